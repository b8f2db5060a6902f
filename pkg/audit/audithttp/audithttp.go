// Package audithttp serves what happened to an operation, and the proof of it.
package audithttp

import (
	"errors"

	"github.com/labstack/echo/v4"

	"github.com/einmal/einmal/pkg/audit"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/idempotency/idemhttp"
	"github.com/einmal/einmal/pkg/problem"
)

// Handlers answer about the log of one service. Whoever made an operation may read its events; an auditor those of everyone in the account.
type Handlers struct {
	DB       *database.DB
	Executor *idempotency.Executor
	Sealer   *audit.Sealer
	Caller   func(echo.Context) idemhttp.Caller
	Auditor  func(echo.Context) bool
}

// event is the event resource: what a leaf is the hash of, and beside it the index of the leaf, once it has one.
type event struct {
	Seq *int64 `json:"seq,omitzero"`
	audit.Event
}

// Events answers GET /v1/operations/:id/events?limit&cursor.
func (h Handlers) Events(c echo.Context) error {
	query := idemhttp.ReadQuery(c)
	page := query.Page()
	if err := query.Err(); err != nil {
		return err
	}
	op, err := h.operation(c)
	if err != nil {
		return err
	}
	fetch := func(before string, limit int) ([]audit.SealedEvent, error) {
		return audit.EventsOf(c.Request().Context(), h.DB, op.AccountID, op.ID, before, limit)
	}
	return idemhttp.WritePage(c, page, fetch, func(e audit.SealedEvent) (string, any) { return e.ID, event{e.Seq, e.Event} })
}

// retryUnsealed is how many seconds until what is not sealed is, where another process seals.
const retryUnsealed = 2

// Receipt answers GET /v1/operations/:id/receipt.
func (h Handlers) Receipt(c echo.Context) error {
	if err := idemhttp.ReadQuery(c).Err(); err != nil {
		return err
	}
	receipt, err := h.receipt(c)
	if errors.Is(err, audit.ErrUnsealed) {
		p := problem.New(problem.StoreUnavailable, "The operation's last events are not sealed yet, so there is nothing to prove them with. Ask again soon.")
		p.RetryAfterSeconds = retryUnsealed
		return p
	}
	if err != nil {
		return err
	}
	return idemhttp.WriteResource(c, receipt)
}

// receipt makes the receipt of the operation in the path. One that has gone on meanwhile is shown again: its events would tell of a state that it does not show.
func (h Handlers) receipt(c echo.Context) (receipt *audit.Receipt, err error) {
	op, err := h.operation(c)
	for err == nil {
		var shown idempotency.Answer
		if shown, err = idemhttp.OperationAnswer(0, op); err != nil {
			break
		}
		if receipt, err = h.Sealer.Receipt(c.Request().Context(), op.AccountID, op.ID, shown.Body); err != nil {
			break
		}
		before := op.State
		if op, err = h.operation(c); op.State == before {
			break
		}
	}
	return receipt, err
}

// operation reads the operation in the path, if the caller may read its events.
func (h Handlers) operation(c echo.Context) (idempotency.Operation, error) {
	caller := h.Caller(c)
	op, err := h.Executor.ByID(c.Request().Context(), caller.Account, c.Param("id"))
	switch {
	case errors.Is(err, idempotency.ErrNotFound):
		return op, problem.New(problem.NotFound, "This account has no operation with this id.")
	case err != nil:
		return op, err
	case op.Principal != caller.Principal && !h.Auditor(c):
		return op, problem.New(problem.Forbidden, "The events of what others have done are for the role auditor.")
	}
	return op, nil
}
