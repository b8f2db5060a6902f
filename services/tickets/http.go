package tickets

import (
	"errors"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/einmal/einmal/pkg/catalogue"
	"github.com/einmal/einmal/pkg/idempotency/idemhttp"
	"github.com/einmal/einmal/pkg/problem"
	"github.com/einmal/einmal/pkg/server"
)

// api is the HTTP side.
type api struct {
	commands commands
	store    store
}

// writes are the routes that change something.
func (a api) writes() []idemhttp.Route {
	return []idemhttp.Route{
		{Method: http.MethodPost, Path: "/v1/tickets", Type: catalogue.TicketCreate, Command: func() idemhttp.Command { return newCreateTicket() }, Handler: a.createTicket},
		{Method: http.MethodPost, Path: "/v1/tickets/:id/comments", Type: catalogue.TicketComment, Command: func() idemhttp.Command { return &addComment{} }, Handler: a.addComment},
		{Method: http.MethodPut, Path: "/v1/tickets/:id/status", Type: catalogue.TicketSetStatus, Command: func() idemhttp.Command { return &setStatus{} }, Handler: a.setStatus},
	}
}

// caller is who authentication found.
func caller(c echo.Context) idemhttp.Caller {
	p := server.PrincipalOf(c)
	return idemhttp.Caller{Account: p.Account, Principal: p.Name}
}

// auditor reports whether the caller may read what everyone in the account did, and not only what it did itself.
func auditor(c echo.Context) bool { return server.PrincipalOf(c).Has(server.Auditor) }

// createTicket answers POST /v1/tickets.
func (a api) createTicket(c echo.Context) error {
	call, err := idemhttp.Begin(c, caller(c))
	if err != nil {
		return err
	}
	command := newCreateTicket()
	if err := call.Decode(command); err != nil {
		return err
	}
	result, err := a.commands.createTicket(c.Request().Context(), call.Request(catalogue.TicketCreate, command), command)
	if err != nil {
		return err
	}
	return idemhttp.Write(c, result)
}

// getTicket answers GET /v1/tickets/:id.
func (a api) getTicket(c echo.Context) error {
	ticket, err := a.store.byID(c.Request().Context(), caller(c).Account, c.Param("id"))
	if errors.Is(err, errNotFound) {
		return noTicket()
	}
	if err != nil {
		return err
	}
	return idemhttp.WriteResource(c, ticket.resource())
}

// noTicket is the answer about a ticket that is not there, whether it was never made or is another account's. Under a key nothing is
// kept of it: the ticket may be made later.
func noTicket() *problem.Problem {
	return problem.New(problem.NotFound, "This account has no such ticket.")
}

// listTickets answers GET /v1/tickets?project&status&source_event_id&limit&cursor.
func (a api) listTickets(c echo.Context) error {
	query := idemhttp.ReadQuery(c)
	page := query.Page()
	f := filter{project: query.Text("project"), sourceEventID: query.Text("source_event_id"), status: Status(query.Text("status"))}
	if f.status != "" && !slices.Contains(statuses, f.status) {
		query.Wrong("status", "must be one of open, in_progress, resolved, closed")
	}
	if err := query.Err(); err != nil {
		return err
	}
	fetch := func(before string, limit int) ([]Ticket, error) {
		return a.store.list(c.Request().Context(), caller(c).Account, f, before, limit)
	}
	return idemhttp.WritePage(c, page, fetch, func(t Ticket) (string, any) { return t.ID, t.resource() })
}
