package idemtest

import (
	"errors"
	"sync"
	"testing"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

func testConflict(t *testing.T, l *lab) {
	x := idempotency.New(l.db, idempotency.Options{})

	t.Run("another command under a used key is a conflict, runs nothing and names the operation", func(t *testing.T) {
		c := l.caller(t)
		var w work
		first := c.do(x, c.request("k", 1), w.apply)
		other := map[string]func(r *idempotency.Request){
			"another body":   func(r *idempotency.Request) { r.Command.Body = map[string]any{"n": 2} },
			"another path":   func(r *idempotency.Request) { r.Command.Path = "/v1/things/1" },
			"another method": func(r *idempotency.Request) { r.Command.Method = "PUT" },
		}
		for name, change := range other {
			req := c.request("k", 1)
			change(&req)
			for _, x := range []*idempotency.Executor{x, idempotency.New(l.db, idempotency.Options{})} {
				got := c.do(x, req, w.apply)
				if got.Outcome != idempotency.OutcomeConflict || got.Operation.ID != first.Operation.ID || got.Operation.State != idempotency.Succeeded {
					t.Errorf("%s: %s with operation %q in state %q", name, got.Outcome, got.Operation.ID, got.Operation.State)
				}
				if got.Answer.Status != 0 || got.Answer.Body != nil {
					t.Errorf("%s: got the answer %d %s", name, got.Answer.Status, got.Answer.Body)
				}
			}
		}
		c.wantRows("k", 1, 1)
		c.wantOutcome(c.do(x, c.request("k", 1), w.apply), idempotency.OutcomeReplayed)
	})
	t.Run("what is no part of the command is no conflict", func(t *testing.T) {
		c := l.caller(t)
		var w work
		c.do(x, c.request("k", 1), w.apply)
		req := c.request("k", 1)
		req.Principal, req.AgentRun, req.RequestID = "another", "run-2", "req-2"
		c.wantOutcome(c.do(x, req, w.apply), idempotency.OutcomeReplayed)
		if op := c.stored("k"); op.Principal != "tester" || op.RequestID != "req-1" {
			t.Errorf("the operation now tells of %s and %s", op.Principal, op.RequestID)
		}
	})
	t.Run("another command is a conflict at once while the first runs, without an operation, and the first goes on", func(t *testing.T) {
		c := l.caller(t)
		g := newGate()
		var first, other work
		var running sync.WaitGroup
		running.Go(func() {
			c.wantExecuted(x.Do(t.Context(), c.request("k", 1), first.ending(func(database.Tx, idempotency.Operation) (idempotency.Answer, error) {
				g.hold()
				return created(), nil
			})))
		})
		<-g.begun
		got := c.do(x, c.request("k", 2), other.apply)
		if got.Outcome != idempotency.OutcomeConflict || got.Operation.ID != "" {
			t.Errorf("%s with operation %q", got.Outcome, got.Operation.ID)
		}
		g.release()
		running.Wait()
		got = c.do(x, c.request("k", 2), other.apply)
		if got.Outcome != idempotency.OutcomeConflict || got.Operation.ID != c.stored("k").ID {
			t.Errorf("afterwards %s with operation %q", got.Outcome, got.Operation.ID)
		}
		c.wantOutcome(c.do(x, c.request("k", 1), first.apply), idempotency.OutcomeReplayed)
		c.wantRows("k", 1, 1)
	})
	t.Run("a command that left nothing does not keep its key from another", func(t *testing.T) {
		c := l.caller(t)
		var w work
		if _, err := x.Do(t.Context(), c.request("k", 1), w.failing(errors.New("boom"))); err == nil {
			t.Fatal("no error")
		}
		c.wantOutcome(c.do(x, c.request("k", 2), w.apply), idempotency.OutcomeExecuted)
		c.wantRows("k", 1, 1)
	})
	t.Run("a fingerprint of a version that nobody here knows is neither the same nor another", func(t *testing.T) {
		c := l.caller(t)
		var w work
		c.do(x, c.request("k", 1), w.apply)
		l.exec(t, "UPDATE operations SET fingerprint = 'v9:00' WHERE account_id = ?", c.account)
		for _, x := range []*idempotency.Executor{x, idempotency.New(l.db, idempotency.Options{})} { // one that has seen it, one that has not
			for n := range 2 {
				got, err := x.Do(t.Context(), c.request("k", n), w.apply)
				if !errors.Is(err, idempotency.ErrFingerprintVersion) || got.Answer.Status != 0 {
					t.Errorf("got %s, %v", got.Outcome, err)
				}
			}
		}
		c.wantRows("k", 1, 1)
		if w.runs.Load() != 1 {
			t.Errorf("ran %d times", w.runs.Load())
		}
	})
}
