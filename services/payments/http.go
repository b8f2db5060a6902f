package payments

import (
	"context"
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/einmal/einmal/pkg/catalogue"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/idempotency/idemhttp"
	"github.com/einmal/einmal/pkg/problem"
	"github.com/einmal/einmal/pkg/server"
)

// api is the HTTP side.
type api struct {
	commands commands
	store    store
	waiter   idemhttp.Waiter
}

// writes are the routes that change something.
func (a api) writes() []idemhttp.Route {
	return []idemhttp.Route{
		{Method: http.MethodPut, Path: "/v1/orders/:id", Type: catalogue.OrderPut, Command: command[putOrder], Handler: a.putOrder, Complete: a.nameOrder},
		{Method: http.MethodPost, Path: "/v1/payments", Type: catalogue.PaymentCreate, Command: command[createPayment], Handler: a.createPayment},
		{Method: http.MethodPost, Path: "/v1/payments/:id/capture", Type: catalogue.PaymentCapture, Command: command[capturePayment], Handler: a.capturePayment, Complete: a.inCurrency},
		{Method: http.MethodPost, Path: "/v1/payments/:id/cancel", Type: catalogue.PaymentCancel, Command: command[cancelPayment], Handler: a.cancelPayment},
		{Method: http.MethodPost, Path: "/v1/payments/:id/refunds", Type: catalogue.RefundCreate, Command: command[createRefund], Handler: a.createRefund, Complete: a.inCurrency},
	}
}

// command makes a command: none has defaults.
func command[C any, P interface {
	*C
	idemhttp.Command
}]() idemhttp.Command {
	return P(new(C))
}

// caller is who authentication found.
func caller(c echo.Context) idemhttp.Caller {
	p := server.PrincipalOf(c)
	return idemhttp.Caller{Account: p.Account, Principal: p.Name}
}

// auditor reports whether the caller may read what everyone in the account did, and not only what it did itself.
func auditor(c echo.Context) bool { return server.PrincipalOf(c).Has(server.Auditor) }

// write reads a command, completes it, executes it, and answers; with Prefer: wait after the effect has ended, if it does in time.
func write[C idemhttp.Command](a api, c echo.Context, operationType string, command C,
	complete func(ctx context.Context, account string, param func(string) string, command idemhttp.Command) error,
	execute func(ctx context.Context, req idempotency.Request, command C) (idempotency.Result, error),
) error {
	call, err := idemhttp.Begin(c, caller(c))
	if err != nil {
		return err
	}
	if err := call.Decode(command); err != nil {
		return err
	}
	if complete != nil {
		if err := complete(c.Request().Context(), caller(c).Account, c.Param, command); err != nil {
			return err
		}
	}
	result, err := execute(c.Request().Context(), call.Request(operationType, command), command)
	if err != nil {
		return err
	}
	if result, err = a.waiter.Wait(c, result); err != nil {
		return err
	}
	return idemhttp.Write(c, result)
}

// found answers with a resource that was read.
func found[R any](c echo.Context, row R, err error, missing func() error, resource func(R) any) error {
	if errors.Is(err, errNotFound) {
		return missing()
	}
	if err != nil {
		return err
	}
	return idemhttp.WriteResource(c, resource(row))
}

func noOrder() error {
	return problem.New(problem.NotFound, "This account has no order with this id.")
}

func noPayment() error {
	return problem.New(problem.NotFound, "This account has no such payment.")
}

func noRefund() error {
	return problem.New(problem.NotFound, "This payment has no such refund.")
}
