package tickets

import (
	"context"
	"errors"
	"net/http"

	"github.com/einmal/einmal/pkg/catalogue"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/idempotency/idemhttp"
	"github.com/einmal/einmal/pkg/outbox"
)

// commands executes commands. It has no way to call anything outside the database: the outbox does that, after the commit.
type commands struct {
	exec    *idempotency.Executor
	store   store
	outbox  *outbox.Outbox
	mirrors bool // there is a desk
}

// createTicket makes a ticket, or finds the one that its event already has.
func (cs commands) createTicket(ctx context.Context, req idempotency.Request, command *createTicket) (idempotency.Result, error) {
	result, err := cs.exec.Do(ctx, req, func(tx database.Tx, op idempotency.Operation) (idempotency.Answer, error) {
		ticket := newTicket(op.AccountID, idempotency.NewID("tkt", tx.Now), op.ID, command, tx.Now)
		inserted, err := cs.store.insert(tx, ticket)
		if err != nil {
			return idempotency.Answer{}, err
		}
		if inserted {
			if ticket.Mirror, err = cs.mirror(tx, req, ticket); err != nil {
				return idempotency.Answer{}, err
			}
			return answer(http.StatusCreated, ticket, creation{resource: ticket.resource(), Disposition: created})
		}
		ticket, err = cs.store.bySourceEvent(tx, op.AccountID, command.Project, *command.SourceEventID)
		if err != nil {
			return idempotency.Answer{}, err
		}
		matches := ticket.matches(command)
		return answer(http.StatusOK, ticket, creation{resource: ticket.resource(), Disposition: existing, ContentMatches: &matches})
	})
	if cs.mirrors && result.Outcome == idempotency.OutcomeExecuted {
		cs.outbox.Nudge()
	}
	return result, err
}

// mirror accepts the operation that brings a new ticket to the desk. Its key follows from the creation's, so that a creation
// which a failover has forgotten, and that is claimed again, mirrors under the same effect key.
func (cs commands) mirror(tx database.Tx, creating idempotency.Request, t Ticket) (*Mirror, error) {
	if !cs.mirrors {
		return nil, nil
	}
	effect := mirrorCommand{Title: t.Title, Description: t.Description, Project: t.Project, ExternalID: t.ID, Account: t.AccountID}
	req := creating
	req.Key, req.Type = mirrorKey(creating.Key), catalogue.TicketMirror
	req.Command = idempotency.Command{Account: t.AccountID, Method: http.MethodPost, Path: href(t.ID) + "/mirror", Body: effect}
	op, claimed, err := cs.exec.Claim(tx, req, idempotency.Answer{
		State: idempotency.Queued, Resource: idempotency.Resource{Type: "ticket", ID: t.ID, Href: href(t.ID)},
	})
	if err != nil {
		return nil, err
	}
	if !claimed {
		return nil, errors.New("mirror ticket: its operation exists without the creation that it follows")
	}
	command, err := idemhttp.Marshal(effect)
	if err != nil {
		return nil, err
	}
	if err := cs.outbox.Enqueue(tx, op, deskName, "mirror", command); err != nil {
		return nil, err
	}
	return &Mirror{OperationID: op.ID, State: op.State}, cs.store.noteMirror(tx, t, op.ID)
}

// mirrorKey is the key of the operation that mirrors the ticket which another one makes.
func mirrorKey(creating idempotency.Key) idempotency.Key {
	return idempotency.Key("mirror:" + creating.Hash())
}

// answer is a success about a ticket.
func answer(status int, ticket Ticket, body any) (idempotency.Answer, error) {
	done, err := idemhttp.Success(status, body)
	done.Location = href(ticket.ID)
	done.Resource = idempotency.Resource{Type: "ticket", ID: ticket.ID, Href: href(ticket.ID)}
	return done, err
}
