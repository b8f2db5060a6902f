package idemtest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

func testRefusal(t *testing.T, l *lab) {
	x := idempotency.New(l.db, idempotency.Options{})

	t.Run("for now, nothing is stored, what apply wrote vanishes, and the same key may be tried later", func(t *testing.T) {
		c := l.caller(t)
		var w work
		no := &idempotency.Refusal{Answer: refused()}
		for range 3 {
			got := c.do(x, c.request("k", 1), w.failing(no))
			c.wantOutcome(got, idempotency.OutcomeRefused)
			if diff := cmp.Diff(idempotency.Result{Outcome: idempotency.OutcomeRefused, Answer: no.Answer}, got); diff != "" {
				t.Error(diff)
			}
			c.wantRows("k", 0, 0)
		}
		c.wantOutcome(c.do(x, c.request("k", 1), w.apply), idempotency.OutcomeExecuted)
		c.wantRows("k", 1, 1)
	})
	t.Run("for ever, the answer is stored and replayed while what apply wrote vanishes", func(t *testing.T) {
		c := l.caller(t)
		var w work
		no := &idempotency.Refusal{Answer: refused(), Final: true}
		got := c.do(x, c.request("k", 1), w.failing(fmt.Errorf("pay order: %w", no)))
		c.wantOutcome(got, idempotency.OutcomeRefused)
		c.wantRows("k", 0, 1)
		if op := c.stored("k"); op.State != idempotency.Failed || op.ID != got.Operation.ID || op.CompletedAt == nil {
			t.Errorf("stored %+v", op)
		}
		for _, x := range []*idempotency.Executor{x, idempotency.New(l.db, idempotency.Options{})} {
			replay := c.do(x, c.request("k", 1), w.apply)
			c.wantOutcome(replay, idempotency.OutcomeReplayed)
			if diff := cmp.Diff(no.Answer, replay.Answer); diff != "" {
				t.Errorf("answer (-first +replay):\n%s", diff)
			}
		}
		c.wantOutcome(c.do(x, c.request("k", 2), w.apply), idempotency.OutcomeConflict)
		c.wantRows("k", 0, 1)
	})
	t.Run("of 64 callers at once all get the same no", func(t *testing.T) {
		c := l.caller(t)
		x := idempotency.New(l.db, idempotency.Options{WaitBudget: time.Minute})
		var w work
		results := c.together(crowd, func(int) (idempotency.Result, error) {
			return x.Do(t.Context(), c.request("k", 1), w.failing(&idempotency.Refusal{Answer: refused(), Final: true}))
		})
		c.wantRows("k", 0, 1)
		want := c.stored("k").Answer()
		for _, r := range results {
			if diff := cmp.Diff(want, r.Answer); diff != "" {
				t.Fatal(diff)
			}
		}
		if w.runs.Load() != 1 {
			t.Errorf("ran %d times", w.runs.Load())
		}
	})
	t.Run("that waiters woke up after, they decide for themselves", func(t *testing.T) {
		c := l.caller(t)
		g := newGate()
		var first, second work
		var running sync.WaitGroup
		running.Go(func() {
			got, err := x.Do(t.Context(), c.request("k", 1), first.ending(func(database.Tx, idempotency.Operation) (idempotency.Answer, error) {
				g.hold()
				return idempotency.Answer{}, &idempotency.Refusal{Answer: refused()}
			}))
			if err != nil || got.Outcome != idempotency.OutcomeRefused {
				t.Errorf("first: %s, %v", got.Outcome, err)
			}
		})
		<-g.begun
		ctx := watch(t.Context())
		running.Go(func() { c.wantExecuted(x.Do(ctx, c.request("k", 1), second.apply)) })
		<-ctx.waits
		g.release()
		running.Wait()
		c.wantRows("k", 1, 1)
	})
	t.Run("that a replica gives for ever, after another has executed meanwhile, gives way to that execution", func(t *testing.T) {
		if !l.postgres() {
			t.Skip("needs two writers")
		}
		c := l.caller(t)
		another := idempotency.New(l.connect(t, database.Options{}), idempotency.Options{})
		var w, theirs work
		var once sync.Once
		// The clock is read when a transaction begins: the second one is that of the refusal, before its claim.
		clock := func() time.Time {
			if w.runs.Load() == 1 {
				once.Do(func() { c.wantExecuted(another.Do(t.Context(), c.request("k", 1), theirs.apply)) })
			}
			return time.Now()
		}
		x := idempotency.New(l.connect(t, database.Options{Clock: clock}), idempotency.Options{})
		got := c.do(x, c.request("k", 1), w.failing(&idempotency.Refusal{Answer: refused(), Final: true}))
		c.wantOutcome(got, idempotency.OutcomeReplayed)
		c.wantRows("k", 1, 1)
		if diff := cmp.Diff(c.stored("k").Answer(), got.Answer); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("that is none but an error says nothing: nothing is stored, and the error is apply's", func(t *testing.T) {
		c := l.caller(t)
		var w work
		boom := errors.New("boom")
		got, err := x.Do(t.Context(), c.request("k", 1), w.failing(boom))
		if !errors.Is(err, boom) || got.Outcome != "" || got.Answer.Status != 0 {
			t.Errorf("got %+v, %v", got, err)
		}
		c.wantRows("k", 0, 0)
		c.wantOutcome(c.do(x, c.request("k", 1), w.apply), idempotency.OutcomeExecuted)
		c.wantRows("k", 1, 1)
	})
	t.Run("of a final kind must fail: its state is no other", func(t *testing.T) {
		c := l.caller(t)
		var w work
		for _, state := range []idempotency.State{"", idempotency.Succeeded, idempotency.Queued} {
			answer := idempotency.Answer{State: state, Status: 409}
			if got, err := x.Do(t.Context(), c.request("k", 1), w.failing(&idempotency.Refusal{Answer: answer, Final: true})); err == nil {
				t.Errorf("state %q: %s", state, got.Outcome)
			}
			c.wantRows("k", 0, 0)
		}
	})
}
