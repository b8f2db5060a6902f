package payments

import (
	"context"
	"errors"
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/einmal/einmal/pkg/catalogue"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/idempotency/idemhttp"
	"github.com/einmal/einmal/pkg/money"
)

// createPayment answers POST /v1/payments.
func (a api) createPayment(c echo.Context) error {
	return write(a, c, catalogue.PaymentCreate, &createPayment{}, nil, a.commands.createPayment)
}

// capturePayment answers POST /v1/payments/:id/capture.
func (a api) capturePayment(c echo.Context) error {
	return write(a, c, catalogue.PaymentCapture, &capturePayment{}, a.inCurrency, func(ctx context.Context, req idempotency.Request, command *capturePayment) (idempotency.Result, error) {
		return a.commands.capturePayment(ctx, req, c.Param("id"), command)
	})
}

// cancelPayment answers POST /v1/payments/:id/cancel.
func (a api) cancelPayment(c echo.Context) error {
	return write(a, c, catalogue.PaymentCancel, &cancelPayment{}, nil, func(ctx context.Context, req idempotency.Request, _ *cancelPayment) (idempotency.Result, error) {
		return a.commands.cancelPayment(ctx, req, c.Param("id"))
	})
}

// inCurrency completes an amount that has no currency of its own: it is the payment's, which never changes. So it can be read before
// the claim.
func (a api) inCurrency(ctx context.Context, account string, param func(string) string, command idemhttp.Command) error {
	payment, err := a.store.payment(a.store.db.Read(ctx), account, param("id"))
	if errors.Is(err, errNotFound) {
		return noPayment()
	}
	if err != nil {
		return err
	}
	return command.(interface {
		in(currency money.Currency) error
	}).in(payment.Amount.Currency)
}

// getPayment answers GET /v1/payments/:id.
func (a api) getPayment(c echo.Context) error {
	ctx := c.Request().Context()
	payment, err := a.store.payment(a.store.db.Read(ctx), caller(c).Account, c.Param("id"))
	return found(c, payment, err, noPayment, func(p Payment) any { return p.resource() })
}

// listPayments answers GET /v1/payments?order_id&state&limit&cursor.
func (a api) listPayments(c echo.Context) error {
	query := idemhttp.ReadQuery(c)
	page, order, state := query.Page(), query.Text("order_id"), PaymentState(query.Text("state"))
	if state != "" && !slices.Contains(paymentStates, state) {
		query.Wrong("state", "must be one of pending, authorized, captured, canceled, failed, unknown")
	}
	if err := query.Err(); err != nil {
		return err
	}
	fetch := func(last string, limit int) ([]Payment, error) {
		return a.store.listPayments(c.Request().Context(), caller(c).Account, order, state, last, limit)
	}
	return idemhttp.WritePage(c, page, fetch, func(p Payment) (string, any) { return p.ID, p.resource() })
}
