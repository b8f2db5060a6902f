package tickets

import (
	"errors"

	"github.com/labstack/echo/v4"

	"github.com/einmal/einmal/pkg/catalogue"
	"github.com/einmal/einmal/pkg/idempotency/idemhttp"
	"github.com/einmal/einmal/pkg/problem"
)

// addComment answers POST /v1/tickets/:id/comments.
func (a api) addComment(c echo.Context) error {
	call, err := idemhttp.Begin(c, caller(c))
	if err != nil {
		return err
	}
	command := &addComment{}
	if err := call.Decode(command); err != nil {
		return err
	}
	result, err := a.commands.addComment(c.Request().Context(), call.Request(catalogue.TicketComment, command), c.Param("id"), command)
	if err != nil {
		return err
	}
	return idemhttp.Write(c, result)
}

// getComment answers GET /v1/tickets/:id/comments/:comment_id.
func (a api) getComment(c echo.Context) error {
	comment, err := a.store.comment(c.Request().Context(), caller(c).Account, c.Param("id"), c.Param("comment_id"))
	if errors.Is(err, errNoComment) {
		return problem.New(problem.NotFound, "This account has no such ticket, or the ticket no such comment.")
	}
	if err != nil {
		return err
	}
	return idemhttp.WriteResource(c, comment.resource())
}

// listComments answers GET /v1/tickets/:id/comments?limit&cursor.
func (a api) listComments(c echo.Context) error {
	query := idemhttp.ReadQuery(c)
	page := query.Page()
	if err := query.Err(); err != nil {
		return err
	}
	ctx, account, ticketID := c.Request().Context(), caller(c).Account, c.Param("id")
	if _, err := a.store.byID(ctx, account, ticketID); errors.Is(err, errNotFound) {
		return noTicket()
	} else if err != nil {
		return err
	}
	fetch := func(before string, limit int) ([]Comment, error) {
		return a.store.comments(ctx, account, ticketID, before, limit)
	}
	return idemhttp.WritePage(c, page, fetch, func(comment Comment) (string, any) { return comment.ID, comment.resource() })
}
