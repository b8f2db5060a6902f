package idemhttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/einmal/einmal/pkg/idempotency"
)

const (
	headerPrefer  = "Prefer"
	headerApplied = "Preference-Applied"

	// MaxPreferWait is the longest that Prefer: wait can ask for: below what load balancers and clients commonly give up after.
	MaxPreferWait = 30 * time.Second

	// firstLook is when a waiting caller looks by himself, since another replica may settle what he waits for. The pauses double up to
	// longestLook: what takes long is not told much later for it, and hundreds who wait leave the database to those who work.
	firstLook   = 100 * time.Millisecond
	longestLook = time.Second
)

// Waiter lets callers wait for the final answer of an accepted operation (RFC 7240, section 4.3).
type Waiter struct {
	Executor *idempotency.Executor
	Settled  func(operationID string) <-chan struct{} // closed when this process settles something of the operation
	Leaving  <-chan struct{}                          // closed when the service ends: who waits is told how it stands
}

// Wait returns the result of an attempt, final if it becomes so within what Prefer: wait asks for.
func (w Waiter) Wait(c echo.Context, result idempotency.Result) (idempotency.Result, error) {
	open := result.Outcome == idempotency.OutcomeAccepted || result.Outcome == idempotency.OutcomeInProgress && result.Operation.ID != ""
	if !open {
		return result, nil
	}
	op, err := w.WaitFor(c, result.Operation)
	if err != nil || !op.State.Final() {
		result.Operation = op
		return result, err
	}
	outcome := idempotency.OutcomeReplayed
	if result.Outcome == idempotency.OutcomeAccepted {
		outcome = idempotency.OutcomeExecuted
	}
	return idempotency.Result{Outcome: outcome, Operation: op, Answer: op.Answer()}, nil
}

// WaitFor returns an operation, final if it becomes so within what Prefer: wait asks for.
func (w Waiter) WaitFor(c echo.Context, op idempotency.Operation) (idempotency.Operation, error) {
	patience := PreferredWait(c.Request().Header)
	if patience == 0 {
		return op, nil
	}
	c.Response().Header().Set(headerApplied, fmt.Sprintf("wait=%d", patience/time.Second))
	ctx, cancel := context.WithTimeout(c.Request().Context(), patience)
	defer cancel()
	for look := firstLook; !op.State.Final(); look = min(2*look, longestLook) {
		settled := w.Settled(op.ID)
		now, err := w.Executor.ByID(c.Request().Context(), op.AccountID, op.ID)
		if err != nil {
			return op, err
		}
		if op = now; op.State.Final() {
			break
		}
		again := time.NewTimer(look)
		select {
		case <-settled:
		case <-again.C:
		case <-w.Leaving:
			again.Stop()
			return op, nil
		case <-ctx.Done():
			again.Stop()
			return op, nil
		}
		again.Stop()
	}
	return op, nil
}

// PreferredWait reads wait=N from Prefer, clamped to MaxPreferWait. Other preferences, and a wait that is no number, are ignored,
// as RFC 7240 asks.
func PreferredWait(h http.Header) time.Duration {
	for _, preference := range strings.Split(strings.Join(h.Values(headerPrefer), ","), ",") {
		preference, _, _ = strings.Cut(preference, ";")
		name, value, _ := strings.Cut(preference, "=")
		if !strings.EqualFold(strings.TrimSpace(name), "wait") {
			continue
		}
		seconds, err := strconv.ParseUint(strings.Trim(strings.TrimSpace(value), `"`), 10, 32)
		if err != nil && !errors.Is(err, strconv.ErrRange) { // out of range it is the largest, which is clamped
			return 0
		}
		return min(time.Duration(seconds)*time.Second, MaxPreferWait)
	}
	return 0
}
