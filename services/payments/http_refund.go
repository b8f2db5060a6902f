package payments

import (
	"context"
	"errors"
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/einmal/einmal/pkg/catalogue"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/idempotency/idemhttp"
)

// createRefund answers POST /v1/payments/:id/refunds.
func (a api) createRefund(c echo.Context) error {
	return write(a, c, catalogue.RefundCreate, &createRefund{}, a.inCurrency, func(ctx context.Context, req idempotency.Request, command *createRefund) (idempotency.Result, error) {
		return a.commands.createRefund(ctx, req, c.Param("id"), command)
	})
}

// getRefund answers GET /v1/payments/:id/refunds/:refund.
func (a api) getRefund(c echo.Context) error {
	ctx := c.Request().Context()
	refund, err := a.store.refund(a.store.db.Read(ctx), caller(c).Account, c.Param("refund"))
	if err == nil && refund.PaymentID != c.Param("id") {
		err = errNotFound
	}
	return found(c, refund, err, noRefund, func(r Refund) any { return r.resource() })
}

// refundStates are those of the operations that make refunds.
var refundStates = []idempotency.State{
	idempotency.AwaitingApproval, idempotency.Queued, idempotency.Running, idempotency.Succeeded, idempotency.Failed, idempotency.Canceled, idempotency.Unknown,
}

// listRefunds answers GET /v1/payments/:id/refunds?state&limit&cursor.
func (a api) listRefunds(c echo.Context) error {
	query := idemhttp.ReadQuery(c)
	page, state := query.Page(), idempotency.State(query.Text("state"))
	if state != "" && !slices.Contains(refundStates, state) {
		query.Wrong("state", "must be one of awaiting_approval, queued, running, succeeded, failed, canceled, unknown")
	}
	if err := query.Err(); err != nil {
		return err
	}
	account, payment := caller(c).Account, c.Param("id")
	if _, err := a.store.payment(a.store.db.Read(c.Request().Context()), account, payment); errors.Is(err, errNotFound) {
		return noPayment()
	} else if err != nil {
		return err
	}
	fetch := func(last string, limit int) ([]Refund, error) {
		return a.store.listRefunds(c.Request().Context(), account, payment, state, last, limit)
	}
	return idemhttp.WritePage(c, page, fetch, func(r Refund) (string, any) { return r.ID, r.resource() })
}
