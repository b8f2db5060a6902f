package payments

import (
	"context"
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/einmal/einmal/pkg/catalogue"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/idempotency/idemhttp"
	"github.com/einmal/einmal/pkg/problem"
)

// putOrder answers PUT /v1/orders/:id.
func (a api) putOrder(c echo.Context) error {
	return write(a, c, catalogue.OrderPut, &putOrder{}, a.nameOrder, func(ctx context.Context, req idempotency.Request, command *putOrder) (idempotency.Result, error) {
		return a.commands.putOrder(ctx, req, c.Param("id"), command)
	})
}

// nameOrder holds the name in the path to the rule.
func (a api) nameOrder(_ context.Context, _ string, param func(string) string, _ idemhttp.Command) error {
	if !orderID.MatchString(param("id")) {
		return problem.Invalid(problem.Violation{Detail: "the order's id, at the end of the path, " + orderIDRule})
	}
	return nil
}

// getOrder answers GET /v1/orders/:id.
func (a api) getOrder(c echo.Context) error {
	ctx := c.Request().Context()
	order, err := a.store.order(a.store.db.Read(ctx), caller(c).Account, c.Param("id"))
	return found(c, order, err, noOrder, func(o Order) any { return o.resource() })
}

// listOrders answers GET /v1/orders?state&limit&cursor.
func (a api) listOrders(c echo.Context) error {
	query := idemhttp.ReadQuery(c)
	page, state := query.Page(), OrderState(query.Text("state"))
	if state != "" && !slices.Contains(orderStates, state) {
		query.Wrong("state", "must be one of open, busy, paid")
	}
	if err := query.Err(); err != nil {
		return err
	}
	fetch := func(last string, limit int) ([]Order, error) {
		return a.store.listOrders(c.Request().Context(), caller(c).Account, state, last, limit)
	}
	return idemhttp.WritePage(c, page, fetch, func(o Order) (string, any) { return o.Position, o.resource() })
}
