package tickets

import (
	"github.com/labstack/echo/v4"

	"github.com/einmal/einmal/pkg/catalogue"
	"github.com/einmal/einmal/pkg/idempotency/idemhttp"
)

// setStatus answers PUT /v1/tickets/:id/status.
func (a api) setStatus(c echo.Context) error {
	call, err := idemhttp.Begin(c, caller(c))
	if err != nil {
		return err
	}
	command := &setStatus{}
	if err := call.Decode(command); err != nil {
		return err
	}
	result, err := a.commands.setStatus(c.Request().Context(), call.Request(catalogue.TicketSetStatus, command), c.Param("id"), command)
	if err != nil {
		return err
	}
	return idemhttp.Write(c, result)
}
