package deployments

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
		{
			Method: http.MethodPost, Path: "/v1/deployments", Type: catalogue.DeploymentCreate,
			Command: func() idemhttp.Command { return newCreateDeployment() }, Handler: a.createDeployment, Complete: parseCommand,
		},
		{
			Method: http.MethodPost, Path: "/v1/deployments/:id/cancel", Type: catalogue.DeploymentCancel,
			Command: func() idemhttp.Command { return &cancelDeployment{} }, Handler: a.cancelDeployment,
		},
		{
			Method: http.MethodPost, Path: "/v1/deployments/:id/rollback", Type: catalogue.DeploymentRollback,
			Command: func() idemhttp.Command { return &rollbackDeployment{} }, Handler: a.rollbackDeployment,
		},
	}
}

// operatorWrites are those that only an operator may use.
func (a api) operatorWrites() []idemhttp.Route {
	return []idemhttp.Route{{
		Method: http.MethodPut, Path: "/v1/environments/:name", Type: catalogue.EnvironmentPut,
		Command: func() idemhttp.Command { return &putEnvironment{} }, Handler: a.putEnvironment, Complete: nameEnvironment,
	}}
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
func found(c echo.Context, resource any, err error, missing *problem.Problem) error {
	if errors.Is(err, errNotFound) {
		return missing
	}
	if err != nil {
		return err
	}
	return idemhttp.WriteResource(c, resource)
}
