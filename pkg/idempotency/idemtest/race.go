package idemtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

// crowd is how many callers send one operation at once.
const crowd = 64

func testRace(t *testing.T, l *lab) {
	t.Run("64 callers of one key are one execution, one answer and no error", func(t *testing.T) {
		c := l.caller(t)
		x := idempotency.New(l.db, idempotency.Options{WaitBudget: time.Minute})
		var w work
		results := c.together(crowd, func(int) (idempotency.Result, error) { return x.Do(t.Context(), c.request("k", 1), w.apply) })
		c.wantOneExecution("k", results)
		if w.runs.Load() != 1 {
			t.Errorf("ran %d times", w.runs.Load())
		}
	})
	t.Run("the same over two replicas, whose callers repeat while it is in progress", func(t *testing.T) {
		c := l.caller(t)
		replicas := l.replicas(t, 2, database.Options{}, idempotency.Options{WaitBudget: time.Minute})
		var w work
		results := c.together(crowd, func(i int) (idempotency.Result, error) {
			return repeat(t.Context(), func() (idempotency.Result, error) { return replicas[i%2].Do(t.Context(), c.request("k", 1), w.apply) })
		})
		c.wantOneExecution("k", results)
	})
	t.Run("many keys, each of many callers on two replicas with few connections", func(t *testing.T) {
		c := l.caller(t)
		replicas := l.replicas(t, 2, database.Options{MaxConns: 2}, idempotency.Options{WaitBudget: time.Minute})
		const keys = 8
		var w work
		results := c.together(keys*8, func(i int) (idempotency.Result, error) {
			req := c.request(idempotency.Key(fmt.Sprint("k", i%keys)), 1)
			return repeat(t.Context(), func() (idempotency.Result, error) { return replicas[i/keys%2].Do(t.Context(), req, w.apply) })
		})
		for k := range keys {
			var those []idempotency.Result
			for i := k; i < len(results); i += keys {
				those = append(those, results[i])
			}
			c.wantOneExecution(idempotency.Key(fmt.Sprint("k", k)), those)
		}
	})
	t.Run("two commands under one key: one is executed, the other never", func(t *testing.T) {
		c := l.caller(t)
		replicas := l.replicas(t, 2, database.Options{}, idempotency.Options{WaitBudget: time.Minute})
		var w work
		results := c.together(crowd, func(i int) (idempotency.Result, error) {
			return repeat(t.Context(), func() (idempotency.Result, error) {
				return replicas[i%2].Do(t.Context(), c.request("k", i/2%2), w.apply)
			})
		})
		c.wantRows("k", 1, 1)
		outcomes := map[int]map[idempotency.Outcome]int{0: {}, 1: {}}
		for i, r := range results {
			outcomes[i/2%2][r.Outcome]++
		}
		winner := 0
		if outcomes[1][idempotency.OutcomeExecuted] == 1 {
			winner = 1
		}
		// An attempt that has not won its claim is nothing to conflict with: it may be about to lose to the other replica, and then
		// the command of its waiters was the right one.
		if outcomes[winner][idempotency.OutcomeExecuted] != 1 || outcomes[winner][idempotency.OutcomeConflict] != 0 ||
			outcomes[1-winner][idempotency.OutcomeConflict] != crowd/2 {
			t.Errorf("outcomes %v", outcomes)
		}
	})
}

// replicas are Executors with pools of their own.
func (l *lab) replicas(t *testing.T, n int, d database.Options, o idempotency.Options) (all []*idempotency.Executor) {
	t.Helper()
	for range n {
		all = append(all, idempotency.New(l.connect(t, d), o))
	}
	return all
}

// together makes n attempts at once, none of which may fail.
func (c *caller) together(n int, attempt func(i int) (idempotency.Result, error)) []idempotency.Result {
	c.t.Helper()
	results := make([]idempotency.Result, n)
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			<-start
			var err error
			if results[i], err = attempt(i); err != nil {
				c.t.Errorf("attempt %d: %v", i, err)
			}
		})
	}
	close(start)
	all.Wait()
	return results
}

// repeat makes an attempt until it is told more than that the first one is still open, as the contract asks of callers.
func repeat(ctx context.Context, attempt func() (idempotency.Result, error)) (idempotency.Result, error) {
	for {
		result, err := attempt()
		open := result.Outcome == idempotency.OutcomeInProgress && result.Operation.ID == ""
		if !open && !errors.Is(err, database.ErrBusy) || ctx.Err() != nil {
			return result, err
		}
	}
}

// wantOneExecution checks that of these attempts one was executed, all others replayed it, and the database agrees.
func (c *caller) wantOneExecution(key idempotency.Key, results []idempotency.Result) {
	c.t.Helper()
	c.wantRows(key, 1, 1)
	outcomes := map[idempotency.Outcome]int{}
	answers := map[string]int{}
	for _, r := range results {
		outcomes[r.Outcome]++
		answers[fmt.Sprint(r.Operation.ID, r.Answer.Status, r.Answer.Location, string(r.Answer.Body))]++
	}
	if outcomes[idempotency.OutcomeExecuted] != 1 || outcomes[idempotency.OutcomeReplayed] != len(results)-1 || len(answers) != 1 {
		c.t.Errorf("outcomes %v, %d different answers; want one executed, the others replayed, one answer", outcomes, len(answers))
	}
}
