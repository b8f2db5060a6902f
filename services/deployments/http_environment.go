package deployments

import (
	"context"

	"github.com/labstack/echo/v4"
	"gorm.io/gorm"

	"github.com/einmal/einmal/pkg/catalogue"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/idempotency/idemhttp"
	"github.com/einmal/einmal/pkg/problem"
)

// putEnvironment answers PUT /v1/environments/:name.
func (a api) putEnvironment(c echo.Context) error {
	return write(a, c, catalogue.EnvironmentPut, &putEnvironment{}, nameEnvironment, func(ctx context.Context, req idempotency.Request, command *putEnvironment) (idempotency.Result, error) {
		return a.commands.putEnvironment(ctx, req, c.Param("name"), command)
	})
}

// nameEnvironment holds the name in the path to the rule.
func nameEnvironment(_ context.Context, _ string, param func(string) string, _ idemhttp.Command) error {
	if !name.MatchString(param("name")) {
		return problem.Invalid(problem.Violation{Detail: "the environment's name, at the end of the path, " + nameRule})
	}
	return nil
}

// getEnvironment answers GET /v1/environments/:name.
func (a api) getEnvironment(c echo.Context) error {
	var env Environment
	err := a.store.db.Snapshot(c.Request().Context(), func(read *gorm.DB) (err error) {
		if env, err = a.store.environment(read, caller(c).Account, c.Param("name")); err != nil {
			return err
		}
		env, err = a.store.fill(read, env)
		return err
	})
	return found(c, env.resource(), err, noEnvironment())
}

// listEnvironments answers GET /v1/environments?limit&cursor.
func (a api) listEnvironments(c echo.Context) error {
	query := idemhttp.ReadQuery(c)
	page := query.Page()
	if err := query.Err(); err != nil {
		return err
	}
	fetch := func(before string, limit int) ([]Environment, error) {
		return a.store.listEnvironments(c.Request().Context(), caller(c).Account, before, limit)
	}
	return idemhttp.WritePage(c, page, fetch, func(e Environment) (string, any) { return e.Position, e.resource() })
}
