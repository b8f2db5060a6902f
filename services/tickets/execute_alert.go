package tickets

import (
	"context"
	"errors"

	"github.com/einmal/einmal/pkg/catalogue"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

// fire makes the ticket of an alert, or finds the one that its event has.
func (cs commands) fire(ctx context.Context, notification idempotency.Request, a alert, project string) (idempotency.Result, error) {
	return cs.createTicket(ctx, a.report(notification, catalogue.TicketCreate, firing), a.ticket(project))
}

// resolve sets the ticket of an alert that is over to resolved if it is open or in progress. An alert of which nobody has heard that it fires
// has fired all the same: its ticket is made first, so that the news of it, if it comes late, finds the ticket resolved and not a reason
// to open one that nobody would ever resolve.
func (cs commands) resolve(ctx context.Context, notification idempotency.Request, a alert, project string) (idempotency.Result, error) {
	fired, err := cs.exec.ByKey(ctx, notification.Command.Account, a.report(notification, catalogue.TicketCreate, firing).Key)
	if errors.Is(err, idempotency.ErrNotFound) {
		var result idempotency.Result
		result, err = cs.fire(ctx, notification, a, project)
		fired = result.Operation
		if err == nil && fired.ID == "" { // another process is about to make the ticket
			return result, nil
		}
	}
	if err != nil {
		return idempotency.Result{}, err
	}
	req := a.report(notification, catalogue.TicketSetStatus, resolved)
	return cs.exec.Do(ctx, req, func(tx database.Tx, op idempotency.Operation) (idempotency.Answer, error) {
		return cs.bring(tx, op, fired.Resource.ID, func(t Ticket) (Status, error) {
			if t.Status == Closed { // by a person, who knows more than a monitor
				return Closed, nil
			}
			return Resolved, nil
		})
	})
}
