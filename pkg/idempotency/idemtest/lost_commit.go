package idemtest

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

// Lose makes the answer to a COMMIT get lost: that of the next transaction that claims an operation, or the one after those
// that earlier calls are waiting for. Done says whether the database hears of the COMMIT.
type Lose func(done bool)

// LostCommits tests what becomes of an attempt whose COMMIT gets no answer. It takes somebody between the pools that fresh
// opens and their database.
func LostCommits(t *testing.T, fresh Fresh, lose Lose) {
	l := newLab(t, fresh)
	var r recorder
	x := idempotency.New(l.db, idempotency.Options{Record: r.record, Note: r.note, WaitBudget: time.Minute})
	final := &idempotency.Refusal{Answer: refused(), Final: true}

	for name, end := range map[string]struct {
		answer  idempotency.Answer
		err     error
		outcome idempotency.Outcome
		effects int
		events  []string
	}{
		"that succeeds":            {created(), nil, idempotency.OutcomeExecuted, 1, []string{"attempted→", "completed→succeeded"}},
		"that is accepted":         {idempotency.Answer{State: idempotency.Queued}, nil, idempotency.OutcomeAccepted, 1, []string{"attempted→", "queued→queued"}},
		"that is refused for ever": {idempotency.Answer{}, final, idempotency.OutcomeRefused, 0, []string{"attempted→", "completed→failed"}},
	} {
		for _, done := range []bool{true, false} {
			how := map[bool]string{true: "done", false: "not done"}[done]
			t.Run("an attempt "+name+", its COMMIT "+how+", finds out and is told what it did", func(t *testing.T) {
				c := l.caller(t)
				var w work
				lose(done)
				got := c.do(x, c.request("k", 1), w.ending(func(database.Tx, idempotency.Operation) (idempotency.Answer, error) { return end.answer, end.err }))
				c.wantOutcome(got, end.outcome)
				c.wantRows("k", end.effects, 1)
				if diff := cmp.Diff(c.stored("k"), got.Operation, sameBytes); diff != "" {
					t.Errorf("operation (-stored +told):\n%s", diff)
				}
				if got.Operation.State.Final() {
					if diff := cmp.Diff(c.stored("k").Answer(), got.Answer, sameBytes); diff != "" {
						t.Errorf("answer (-stored +told):\n%s", diff)
					}
				}
				runs := int64(1)
				if !done && end.err == nil { // a refusal that is lost is stored again, not thought over
					runs = 2
				}
				if w.runs.Load() != runs {
					t.Errorf("ran %d times, want %d", w.runs.Load(), runs)
				}
				if diff := cmp.Diff(end.events, c.recorded()); diff != "" {
					t.Errorf("recorded (-want +got):\n%s", diff)
				}
				if noted := r.noted(); len(noted) > 0 {
					t.Errorf("noted %v", noted)
				}
				again := c.do(x, c.request("k", 1), w.apply)
				if again.Operation.ID != got.Operation.ID {
					t.Error("a retry meets another operation")
				}
				c.wantRows("k", end.effects, 1)
				r.noted()
			})
		}
	}
	for _, second := range []bool{true, false} {
		t.Run("an attempt that loses two answers in a row is unknown, and its retry finds out", func(t *testing.T) {
			c := l.caller(t)
			var w work
			lose(false)
			lose(second)
			if got, err := x.Do(t.Context(), c.request("k", 1), w.apply); !errors.Is(err, database.ErrCommitUnknown) {
				t.Errorf("got %s, %v; want ErrCommitUnknown", got.Outcome, err)
			}
			want := idempotency.OutcomeExecuted
			if second {
				want = idempotency.OutcomeReplayed
			}
			got, err := repeat(t.Context(), func() (idempotency.Result, error) { return x.Do(t.Context(), c.request("k", 1), w.apply) })
			if err != nil || got.Outcome != want {
				t.Errorf("the retry: %s, %v; want %s", got.Outcome, err, want)
			}
			c.wantRows("k", 1, 1)
		})
	}
	t.Run("an attempt that runs again may end otherwise: what is told is what is stored", func(t *testing.T) {
		c := l.caller(t)
		var w work
		lose(false)
		changes := w.ending(func(database.Tx, idempotency.Operation) (idempotency.Answer, error) {
			if w.runs.Load() > 1 {
				return idempotency.Answer{}, final
			}
			return created(), nil
		})
		// The session whose answer was lost may be a moment in ending.
		got, err := repeat(t.Context(), func() (idempotency.Result, error) { return x.Do(t.Context(), c.request("k", 1), changes) })
		if err != nil || got.Outcome != idempotency.OutcomeRefused {
			t.Errorf("got %s, %v", got.Outcome, err)
		}
		c.wantRows("k", 0, 1)
	})
	t.Run("64 callers at once: one execution, and nobody is told another answer", func(t *testing.T) {
		for _, done := range []bool{true, false} {
			c := l.caller(t)
			var w work
			lose(done)
			c.wantOneExecution("k", c.together(crowd, func(int) (idempotency.Result, error) { return x.Do(t.Context(), c.request("k", 1), w.apply) }))
		}
	})
	t.Run("a duplicate in another replica meanwhile: one execution, and both are told the same", func(t *testing.T) {
		for _, done := range []bool{true, false} {
			c := l.caller(t)
			replicas := append(l.replicas(t, 1, database.Options{}, idempotency.Options{WaitBudget: time.Minute}), x)
			var w work
			lose(done)
			var all sync.WaitGroup
			results := make([]idempotency.Result, 2)
			for i, x := range replicas {
				all.Go(func() {
					var err error
					results[i], err = repeat(t.Context(), func() (idempotency.Result, error) { return x.Do(t.Context(), c.request("k", 1), w.apply) })
					if err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			c.wantOneExecution("k", results)
		}
	})
}
