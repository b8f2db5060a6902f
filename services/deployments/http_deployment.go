package deployments

import (
	"context"
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/einmal/einmal/pkg/catalogue"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/idempotency/idemhttp"
)

// createDeployment answers POST /v1/deployments.
func (a api) createDeployment(c echo.Context) error {
	return write(a, c, catalogue.DeploymentCreate, newCreateDeployment(), parseCommand, a.commands.deploy)
}

// parseCommand holds the artifact to what can't change, and names it as it is deployed.
func parseCommand(_ context.Context, _ string, _ func(string) string, command idemhttp.Command) error {
	return command.(*createDeployment).parse()
}

// cancelDeployment answers POST /v1/deployments/:id/cancel.
func (a api) cancelDeployment(c echo.Context) error {
	return write(a, c, catalogue.DeploymentCancel, &cancelDeployment{}, nil, func(ctx context.Context, req idempotency.Request, _ *cancelDeployment) (idempotency.Result, error) {
		return a.commands.cancel(ctx, req, c.Param("id"))
	})
}

// rollbackDeployment answers POST /v1/deployments/:id/rollback.
func (a api) rollbackDeployment(c echo.Context) error {
	return write(a, c, catalogue.DeploymentRollback, &rollbackDeployment{}, nil, func(ctx context.Context, req idempotency.Request, command *rollbackDeployment) (idempotency.Result, error) {
		return a.commands.rollBack(ctx, req, c.Param("id"), command)
	})
}

// getDeployment answers GET /v1/deployments/:id, the status resource.
func (a api) getDeployment(c echo.Context) error {
	d, err := a.store.byID(a.store.db.Read(c.Request().Context()), caller(c).Account, c.Param("id"))
	return found(c, d.resource(), err, noDeployment())
}

// states are those that a deployment can be in.
var states = []idempotency.State{
	idempotency.AwaitingApproval, idempotency.Queued, idempotency.Running, idempotency.Succeeded, idempotency.Failed, idempotency.Canceled, idempotency.Unknown,
}

// listDeployments answers GET /v1/deployments?environment&service&state&limit&cursor.
func (a api) listDeployments(c echo.Context) error {
	query := idemhttp.ReadQuery(c)
	page := query.Page()
	f := filter{environment: query.Text("environment"), service: query.Text("service"), state: idempotency.State(query.Text("state"))}
	if f.state != "" && !slices.Contains(states, f.state) {
		query.Wrong("state", "must be one of awaiting_approval, queued, running, succeeded, failed, canceled, unknown")
	}
	if err := query.Err(); err != nil {
		return err
	}
	fetch := func(before string, limit int) ([]Deployment, error) {
		return a.store.list(c.Request().Context(), caller(c).Account, f, before, limit)
	}
	return idemhttp.WritePage(c, page, fetch, func(d Deployment) (string, any) { return d.ID, d.resource() })
}
