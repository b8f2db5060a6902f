package outboxhttp

import (
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/einmal/einmal/pkg/catalogue"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/idempotency/idemhttp"
	"github.com/einmal/einmal/pkg/outbox"
	"github.com/einmal/einmal/pkg/problem"
)

// Handlers answer about the effects of one service.
type Handlers struct {
	DB       *database.DB
	Executor *idempotency.Executor
	Outbox   *outbox.Outbox
	Caller   func(echo.Context) idemhttp.Caller
}

// Writes are the routes that an agent may use. Each path names the operation that is canceled or asked about.
func (h Handlers) Writes() []idemhttp.Route {
	return []idemhttp.Route{
		{Method: http.MethodPost, Path: "/v1/operations/:id/cancel", Type: catalogue.OperationCancel, Command: nothing, Handler: h.cancel},
		{Method: http.MethodPost, Path: "/v1/operations/:id/reconcile", Type: catalogue.OperationReconcile, Command: nothing, Handler: h.reconcile},
	}
}

// noMembers is the command of a request that says nothing but its path.
type noMembers struct{}

func nothing() idemhttp.Command { return &noMembers{} }

func (*noMembers) Validate() []problem.Violation { return nil }

// cancel answers POST /v1/operations/:id/cancel: 200 when the operation has ended, 202 when its target has to be closed first.
func (h Handlers) cancel(c echo.Context) error {
	return h.about(c, catalogue.OperationCancel, h.Outbox.Cancel)
}

// reconcile answers POST /v1/operations/:id/reconcile: 202, the target is asked now.
func (h Handlers) reconcile(c echo.Context) error {
	return h.about(c, catalogue.OperationReconcile, h.Outbox.Reconcile)
}

// about executes a write about the operation in the path.
func (h Handlers) about(c echo.Context, operationType string, do func(tx database.Tx, account, operationID string) (outbox.Effect, error)) error {
	call, err := idemhttp.Begin(c, h.Caller(c))
	if err != nil {
		return err
	}
	command := nothing()
	if err := call.Decode(command); err != nil {
		return err
	}
	account, id := h.Caller(c).Account, c.Param("id")
	result, err := h.Executor.Do(c.Request().Context(), call.Request(operationType, command), func(tx database.Tx, _ idempotency.Operation) (idempotency.Answer, error) {
		switch _, err := h.Executor.Row(tx, account, id); {
		case errors.Is(err, idempotency.ErrNotFound):
			return idempotency.Answer{}, problem.New(problem.NotFound, "This account has no operation with this id.")
		case err != nil:
			return idempotency.Answer{}, err
		}
		e, err := do(tx, account, id)
		switch {
		case errors.Is(err, outbox.ErrNoEffect):
			return idempotency.Answer{}, h.refuse(tx, account, id, problem.OperationFinal, "This operation has ended; its answer does not change any more.")
		case errors.Is(err, outbox.ErrRunning):
			return idempotency.Answer{}, h.refuse(tx, account, id, problem.OperationRunning, "Its effect may have happened, and its target can't take it back. Wait for its final answer.")
		case errors.Is(err, outbox.ErrNotServed):
			return idempotency.Answer{}, notServed()
		case err != nil:
			return idempotency.Answer{}, err
		}
		return h.asItIs(tx, e)
	})
	if err != nil {
		return err
	}
	h.Outbox.Nudge()
	h.Outbox.Announce(id)
	return idemhttp.Write(c, result)
}

// notServed is the answer where nobody here can end an effect. Nothing is stored: another process can, or this one later.
func notServed() *problem.Problem {
	return problem.New(problem.TargetNotServed, "This process does not serve the target of the operation's effect, so it can't end it; nothing was done.")
}

// asItIs answers with the operation of an effect as the transaction leaves it. Where somebody else has ended it since the effect was
// read, what was asked for came too late.
func (h Handlers) asItIs(tx database.Tx, e outbox.Effect) (idempotency.Answer, error) {
	op, err := h.operation(tx, e.AccountID, e.OperationID)
	if err != nil {
		return idempotency.Answer{}, err
	}
	if op.State.Final() && !e.State.Final() {
		return idempotency.Answer{}, idemhttp.RefusalAbout(op, problem.New(problem.OperationFinal, "This operation has ended; its answer does not change any more."))
	}
	status := http.StatusOK
	if !op.State.Final() {
		status = http.StatusAccepted
	}
	return idemhttp.OperationAnswer(status, op)
}

// refuse says why nothing can be done about an operation: with its id and state, for whoever reads next what to poll.
func (h Handlers) refuse(tx database.Tx, account, id string, code problem.Code, detail string) error {
	op, err := h.operation(tx, account, id)
	if err != nil {
		return err
	}
	return idemhttp.RefusalAbout(op, problem.New(code, detail))
}

// operation reads an operation as the transaction sees it.
func (h Handlers) operation(tx database.Tx, account, id string) (idempotency.Operation, error) {
	op, err := h.Executor.Row(tx, account, id)
	if err != nil {
		return idempotency.Operation{}, err
	}
	return op, outbox.DescribeIn(tx, &op)
}
