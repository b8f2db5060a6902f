package idemhttp

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/problem"
)

// Response headers. Idempotent-Replayed is how Stripe and others mark a replay; the rest are ours.
const (
	HeaderOperation  = "Operation-Id"
	HeaderOutcome    = "Idempotency-Outcome"
	HeaderReplayed   = "Idempotent-Replayed"
	HeaderExecutedAt = "Idempotency-Executed-At"
	headerRetryAfter = "Retry-After"
)

// retryAfter is how many seconds a caller is asked to wait for an operation that is in progress: the least that the header can
// say, since local work takes milliseconds.
const retryAfter = 1

// waitPerson is how many where a person has to act first, who has a working day: a minute after they have is soon enough.
const waitPerson = 60

// Write answers an attempt with what became of it.
func Write(c echo.Context, result idempotency.Result) error {
	h := c.Response().Header()
	h.Set(HeaderOutcome, string(result.Outcome))
	op := result.Operation
	if op.ID != "" {
		h.Set(HeaderOperation, op.ID)
	}
	switch result.Outcome {
	case idempotency.OutcomeExecuted:
		return writeAnswer(c, result.Answer)
	case idempotency.OutcomeReplayed:
		h.Set(HeaderReplayed, "true")
		h.Set(HeaderExecutedAt, Time(*op.CompletedAt).String())
		return writeAnswer(c, result.Answer)
	case idempotency.OutcomeRefused:
		return writeAnswer(c, result.Answer)
	case idempotency.OutcomeAccepted:
		return writeOpen(c, op)
	case idempotency.OutcomeInProgress:
		if op.ID != "" {
			return writeOpen(c, op)
		}
		p := problem.New(problem.OperationInProgress, "The first attempt with this key has not ended yet. Send the same request with the same key again.")
		p.RetryAfterSeconds = retryAfter
		return p
	case idempotency.OutcomeConflict:
		return about(op, problem.New(problem.IdempotencyKeyReused,
			"This key belongs to another command, and nothing was done. If this is a retry, its content has changed since it was first sent: find out why before anything is sent again."))
	case idempotency.OutcomeExpired:
		if op.ID == "" {
			return forgotten()
		}
		p := problem.New(problem.IdempotencyKeyExpired,
			"The operation of this key has ended, and its answer is not given any more. It is not executed again; operation_state says how it ended.")
		p.Effect, p.NextAction = problem.Effect(op.State.Effect()), problem.NextStop // how it ended is still known
		return about(op, p)
	}
	return fmt.Errorf("write result: no answer for outcome %q", result.Outcome)
}

// forgotten is the answer about a key that is older than keys are remembered: nobody knows what became of it.
func forgotten() *problem.Problem {
	return problem.New(problem.IdempotencyKeyExpired, "This key is a UUIDv7, and tells that it was made longer ago than keys are remembered here (retention in /.well-known/idempotency-policy). "+
		"Whether it was used then is not known any more, so nothing is executed with it. Look at what it was to make or change; a key that was never sent has been made by a clock that is wrong.")
}

// Success is the answer of work that is done: its resource, as JSON. Where there is a Location or a Resource to tell, add it.
func Success(status int, resource any) (idempotency.Answer, error) {
	body, err := Marshal(resource)
	return idempotency.Answer{State: idempotency.Succeeded, Status: status, Body: body}, err
}

// RefusalFinal is a refusal that is stored and replayed, with p as the answer. It belongs inside an apply.
func RefusalFinal(op idempotency.Operation, p *problem.Problem) *idempotency.Refusal {
	op.State = idempotency.Failed
	return &idempotency.Refusal{Answer: refusal(about(op, p)), Final: true}
}

// RefusalAbout is RefusalFinal of a request about another operation: the problem names that one, as it is, so that whoever follows its
// advice asks about the operation that was meant. The request's own is in Operation-Id.
func RefusalAbout(subject idempotency.Operation, p *problem.Problem) *idempotency.Refusal {
	o := newOperation(subject)
	p.Effect = problem.Effect(o.Effect)
	if !subject.State.Final() {
		p.NextAction = o.NextAction
	}
	return &idempotency.Refusal{Answer: refusal(about(subject, p)), Final: true}
}

// Failure is the final answer of an accepted operation that failed or was canceled.
func Failure(operationID string, state idempotency.State, p *problem.Problem) idempotency.Answer {
	a := refusal(about(idempotency.Operation{ID: operationID, State: state}, p))
	a.State = state
	return a
}

// RefusalForNow is a refusal of which nothing is stored: the same key may be tried later, after p.RetryAfterSeconds.
func RefusalForNow(p *problem.Problem) *idempotency.Refusal {
	return &idempotency.Refusal{Answer: refusal(p)}
}

func refusal(p *problem.Problem) idempotency.Answer {
	return idempotency.Answer{State: idempotency.Failed, Status: p.Status, Body: p.JSON()}
}

// about adds the operation that a problem is about, if one is committed.
func about(op idempotency.Operation, p *problem.Problem) *problem.Problem {
	if op.ID != "" {
		p.OperationID, p.OperationState, p.Instance = op.ID, string(op.State), operationHref(op.ID)
	}
	return p
}

// writeAnswer writes a final answer, byte for byte.
func writeAnswer(c echo.Context, a idempotency.Answer) error {
	media := echo.MIMEApplicationJSON
	if a.State != idempotency.Succeeded {
		media = problem.ContentType
	}
	if a.State != idempotency.Succeeded || a.Status == http.StatusAccepted { // a problem, or an operation that goes on
		if seconds := retryAfterOf(a.Body); seconds > 0 {
			c.Response().Header().Set(headerRetryAfter, strconv.Itoa(seconds))
		}
	}
	if a.Location != "" {
		c.Response().Header().Set(echo.HeaderLocation, a.Location)
	}
	return c.Blob(a.Status, media, a.Body)
}

// writeOpen answers 202 with the operation as it is now.
func writeOpen(c echo.Context, op idempotency.Operation) error {
	h := c.Response().Header()
	o := newOperation(op)
	h.Set(echo.HeaderLocation, operationHref(op.ID))
	h.Set(headerRetryAfter, strconv.Itoa(o.RetryAfterSeconds))
	return writeJSON(c, http.StatusAccepted, o)
}
