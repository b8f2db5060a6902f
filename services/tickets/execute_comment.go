package tickets

import (
	"context"
	"net/http"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/idempotency/idemhttp"
)

// addComment adds a comment to a ticket, and counts it there.
func (cs commands) addComment(ctx context.Context, req idempotency.Request, ticketID string, command *addComment) (idempotency.Result, error) {
	return cs.exec.Do(ctx, req, func(tx database.Tx, op idempotency.Operation) (idempotency.Answer, error) {
		counted, err := cs.store.countComment(tx, op.AccountID, ticketID)
		if err != nil {
			return idempotency.Answer{}, err
		}
		if !counted {
			return idempotency.Answer{}, noTicket()
		}
		comment := Comment{
			AccountID: op.AccountID, TicketID: ticketID, ID: idempotency.NewID("cmt", tx.Now), Author: req.Principal, Body: command.Body,
			OperationID: op.ID, CreatedAt: tx.Now,
		}
		if err := cs.store.insertComment(tx, comment); err != nil {
			return idempotency.Answer{}, err
		}
		done, err := idemhttp.Success(http.StatusCreated, comment.resource())
		done.Location = comment.href()
		done.Resource = idempotency.Resource{Type: "comment", ID: comment.ID, Href: comment.href()}
		return done, err
	})
}
