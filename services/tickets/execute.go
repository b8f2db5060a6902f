package tickets

import (
	"context"
	"net/http"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/idempotency/idemhttp"
)

// commands executes commands. It has no way to call anything outside the database.
type commands struct {
	exec  *idempotency.Executor
	store store
}

// createTicket makes a ticket, or finds the one that its event already has.
func (cs commands) createTicket(ctx context.Context, req idempotency.Request, command *createTicket) (idempotency.Result, error) {
	return cs.exec.Do(ctx, req, func(tx database.Tx, op idempotency.Operation) (idempotency.Answer, error) {
		ticket := newTicket(op.AccountID, idempotency.NewID("tkt", tx.Now), op.ID, command, tx.Now)
		inserted, err := cs.store.insert(tx, ticket)
		if err != nil {
			return idempotency.Answer{}, err
		}
		if inserted {
			return answer(http.StatusCreated, ticket, creation{resource: ticket.resource(), Disposition: created})
		}
		ticket, err = cs.store.bySourceEvent(tx, op.AccountID, command.Project, *command.SourceEventID)
		if err != nil {
			return idempotency.Answer{}, err
		}
		matches := ticket.matches(command)
		return answer(http.StatusOK, ticket, creation{resource: ticket.resource(), Disposition: existing, ContentMatches: &matches})
	})
}

// answer is a success about a ticket.
func answer(status int, ticket Ticket, body any) (idempotency.Answer, error) {
	done, err := idemhttp.Success(status, body)
	done.Location = href(ticket.ID)
	done.Resource = idempotency.Resource{Type: "ticket", ID: ticket.ID, Href: href(ticket.ID)}
	return done, err
}
