package payments

import (
	"context"
	"errors"
	"net/http"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/problem"
)

// putOrder makes an order say what the command says.
func (cs commands) putOrder(ctx context.Context, req idempotency.Request, id string, command *putOrder) (idempotency.Result, error) {
	return cs.exec.Do(ctx, req, func(tx database.Tx, op idempotency.Operation) (idempotency.Answer, error) {
		for { // until nobody was faster: whoever was has made it, changed it, or frozen it
			order, err := cs.store.order(tx.DB, op.AccountID, id)
			switch {
			case errors.Is(err, errNotFound):
				order = Order{AccountID: op.AccountID, ID: id, Position: idempotency.NewID("ord", tx.Now), CreatedAt: tx.Now}.with(command, tx.Now)
				inserted, err := cs.store.insertOrder(tx, order)
				if err != nil {
					return idempotency.Answer{}, err
				}
				if inserted {
					return answer(http.StatusCreated, aboutOrder(id), orderPut{order.resource(), true})
				}
				continue
			case err != nil:
				return idempotency.Answer{}, err
			case order.says(command):
				return answer(http.StatusOK, aboutOrder(id), orderPut{order.resource(), false})
			case order.Frozen:
				return idempotency.Answer{}, refuse(op, problem.OrderFrozen, "A payment refers to order "+id+", so what it says stays. Anything else is another order.")
			}
			order = order.with(command, tx.Now)
			changed, err := cs.store.changeOrder(tx, order)
			if err != nil {
				return idempotency.Answer{}, err
			}
			if changed {
				return answer(http.StatusOK, aboutOrder(id), orderPut{order.resource(), true})
			}
		}
	})
}
