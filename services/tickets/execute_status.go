package tickets

import (
	"context"
	"errors"
	"net/http"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/idempotency/idemhttp"
)

// setStatus brings a ticket to the status that a command asks for.
func (cs commands) setStatus(ctx context.Context, req idempotency.Request, ticketID string, command *setStatus) (idempotency.Result, error) {
	return cs.exec.Do(ctx, req, func(tx database.Tx, op idempotency.Operation) (idempotency.Answer, error) {
		return cs.bring(tx, op, ticketID, func(t Ticket) (Status, error) {
			if p := t.refuses(command); p != nil {
				return "", idemhttp.RefusalFinal(op, p)
			}
			return command.Status, nil
		})
	})
}

// bring brings a ticket to the status that decide gives for it. Where somebody else has moved the ticket since it was read, that is decided
// again: of all who do so at once one gets on each time, and the deadline of the work ends it for the rest.
func (cs commands) bring(tx database.Tx, op idempotency.Operation, ticketID string, decide func(Ticket) (Status, error)) (idempotency.Answer, error) {
	for {
		ticket, err := cs.store.byIDIn(tx, op.AccountID, ticketID)
		if errors.Is(err, errNotFound) {
			return idempotency.Answer{}, noTicket()
		}
		if err != nil {
			return idempotency.Answer{}, err
		}
		status, err := decide(ticket)
		if err != nil {
			return idempotency.Answer{}, err
		}
		if status == ticket.Status {
			return answer(http.StatusOK, ticket, statusSet{resource: ticket.resource(), Changed: false})
		}
		moved := ticket.withStatus(status, tx.Now)
		if err := cs.store.writeStatus(tx, ticket.Version, moved); errors.Is(err, errMoved) {
			continue
		} else if err != nil {
			return idempotency.Answer{}, err
		}
		return answer(http.StatusOK, moved, statusSet{resource: moved.resource(), Changed: true})
	}
}
