package idemhttp

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"

	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/problem"
)

// operation is the operation resource.
type operation struct {
	ID                string               `json:"id"`
	Type              string               `json:"type"`
	State             idempotency.State    `json:"state"`
	Effect            string               `json:"effect"`
	AgentRun          string               `json:"agent_run,omitzero"`
	Resource          idempotency.Resource `json:"resource,omitzero"`
	Response          *response            `json:"response,omitzero"`
	ResponseExpiredAt *Time                `json:"response_expired_at,omitzero"`
	ApprovalID        string               `json:"approval_id,omitzero"`
	ReviewID          string               `json:"review_id,omitzero"`
	Target            string               `json:"target,omitzero"`
	EffectKey         string               `json:"effect_key,omitzero"`
	Reference         string               `json:"reference,omitzero"`
	Attempts          []send               `json:"attempts"` // sends to the target; local work has none
	Deadline          *Time                `json:"deadline,omitzero"`
	CreatedAt         Time                 `json:"created_at"`
	UpdatedAt         Time                 `json:"updated_at"`
	NextAction        problem.NextAction   `json:"next_action"`
	RetryAfterSeconds int                  `json:"retry_after_seconds"`
}

// send is one call that may have had the effect.
type send struct {
	ID        string `json:"id"`
	StartedAt Time   `json:"started_at"`
	EndedAt   *Time  `json:"ended_at,omitzero"`
	Outcome   string `json:"outcome,omitzero"` // absent while it is under way, or if its process died
	Error     string `json:"error,omitzero"`
	Reference string `json:"reference,omitzero"`
}

// response is the stored final answer; without a body if it has none, or none any more.
type response struct {
	Status   int            `json:"status"`
	Location string         `json:"location,omitzero"`
	Body     jsontext.Value `json:"body,omitzero"`
}

func newOperation(op idempotency.Operation) operation {
	o := operation{
		ID: op.ID, Type: op.Type, State: op.State, Effect: op.State.Effect(), AgentRun: op.AgentRun, Resource: op.Resource,
		Attempts: []send{}, CreatedAt: Time(op.CreatedAt), UpdatedAt: Time(op.UpdatedAt),
		ResponseExpiredAt: (*Time)(op.ResponseExpiredAt),
	}
	if op.State.Final() {
		o.Response = &response{Status: op.ResponseStatus, Location: op.ResponseLocation}
		if len(op.ResponseBody) > 0 { // dropped, or never there (204)
			o.Response.Body = op.ResponseBody
		}
	}
	if e := op.Effect; e != nil {
		o.ApprovalID, o.ReviewID, o.Target, o.EffectKey, o.Reference, o.Deadline = e.ApprovalID, e.ReviewID, e.Target, e.Key, e.Reference, (*Time)(e.Deadline)
		if e.InDoubt { // queued again, under the same key
			o.Effect = idempotency.Unknown.Effect()
		}
		for _, s := range e.Sends {
			o.Attempts = append(o.Attempts, send{s.ID, Time(s.StartedAt), (*Time)(s.EndedAt), s.Outcome, s.Error, s.Reference})
		}
	}
	o.NextAction = nextAction(op)
	switch {
	case op.State.Final():
	case o.NextAction == problem.NextAskHuman:
		o.RetryAfterSeconds = waitPerson
	default:
		o.RetryAfterSeconds = retryAfter
	}
	return o
}

// nextAction is what whoever asks for an operation should do. A failed one repeats the advice of its own answer.
func nextAction(op idempotency.Operation) problem.NextAction {
	switch op.State {
	case idempotency.Succeeded, idempotency.Canceled:
		return problem.NextStop
	case idempotency.AwaitingApproval:
		return problem.NextAskHuman
	case idempotency.Unknown:
		if op.Effect != nil && op.Effect.ReviewID != "" {
			return problem.NextAskHuman
		}
	case idempotency.Failed:
		if advice := adviceOf(op.ResponseBody).NextAction; advice != "" {
			return advice
		}
		return problem.NextNewOperation
	}
	return problem.NextPollOperation
}

// advice is what a stored problem document says to do.
type advice struct {
	NextAction        problem.NextAction `json:"next_action"`
	RetryAfterSeconds int                `json:"retry_after_seconds"`
}

func adviceOf(body []byte) (a advice) {
	_ = json.Unmarshal(body, &a) // an answer that is no problem document gives no advice
	return a
}

func retryAfterOf(body []byte) int { return adviceOf(body).RetryAfterSeconds }

// OperationAnswer is a success whose body is an operation: of a cancel, of a reconcile.
func OperationAnswer(status int, op idempotency.Operation) (idempotency.Answer, error) {
	body, err := Marshal(newOperation(op))
	return idempotency.Answer{
		State: idempotency.Succeeded, Status: status, Location: operationHref(op.ID), Body: body,
		Resource: idempotency.Resource{Type: "operation", ID: op.ID, Href: operationHref(op.ID)},
	}, err
}

func operationHref(id string) string { return "/v1/operations/" + id }

// Operations serves GET /v1/operations/:id and GET /v1/operations of one service.
type Operations struct {
	Executor *idempotency.Executor
	Caller   func(echo.Context) Caller
	Waiter   Waiter
}

// Get answers GET /v1/operations/:id.
func (o Operations) Get(c echo.Context) error {
	op, err := o.Executor.ByID(c.Request().Context(), o.Caller(c).Account, c.Param("id"))
	return o.one(c, op, err, problem.New(problem.NotFound, "This account has no operation with this id."))
}

// List answers GET /v1/operations: with an Idempotency-Key, the operation that it names (404 operation-not-found: no attempt
// with this key has committed, so it is safe to send with it); without, all of the account's, newest first.
func (o Operations) List(c echo.Context) error {
	ctx, account := c.Request().Context(), o.Caller(c).Account
	if len(c.Request().Header.Values(HeaderKey)) > 0 {
		key, err := key(c.Request())
		if err != nil {
			return err
		}
		if err := ReadQuery(c).Err(); err != nil { // there is one operation: nothing to page through
			return err
		}
		op, err := o.Executor.ByKey(ctx, account, key)
		if errors.Is(err, idempotency.ErrForgotten) {
			return forgotten()
		}
		return o.one(c, op, err, problem.New(problem.OperationNotFound,
			"No operation of this account has this key: it was not seen here for as long as keys are remembered (retention in /.well-known/idempotency-policy), and is safe to send with."))
	}
	query := ReadQuery(c)
	page := query.Page()
	if err := query.Err(); err != nil {
		return err
	}
	fetch := func(before string, limit int) ([]idempotency.Operation, error) {
		return o.Executor.List(ctx, account, before, limit)
	}
	return WritePage(c, page, fetch, func(op idempotency.Operation) (string, any) { return op.ID, newOperation(op) })
}

// one answers with an operation that was read, or with the problem that says that there is none.
func (o Operations) one(c echo.Context, op idempotency.Operation, err error, none *problem.Problem) error {
	if errors.Is(err, idempotency.ErrNotFound) {
		return none
	}
	if err != nil {
		return err
	}
	if op, err = o.Waiter.WaitFor(c, op); err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, newOperation(op))
}

// WriteResource answers a read.
func WriteResource(c echo.Context, resource any) error { return writeJSON(c, http.StatusOK, resource) }

func writeJSON(c echo.Context, status int, v any) error {
	body, err := Marshal(v)
	if err != nil {
		return err
	}
	return c.JSONBlob(status, body)
}

// Marshal is how every resource becomes bytes.
func Marshal(v any) ([]byte, error) {
	body, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("marshal resource: %w", err)
	}
	return body, nil
}
