package idemtest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

func testCancel(t *testing.T, l *lab) {
	x := idempotency.New(l.db, idempotency.Options{WaitBudget: time.Minute, WorkTimeout: time.Minute})

	t.Run("a caller that leaves while its work runs does not stop it, and its retry gets the answer", func(t *testing.T) {
		c := l.caller(t)
		ctx, leave := context.WithCancel(t.Context())
		var w work
		got, err := x.Do(ctx, c.request("k", 1), w.ending(func(tx database.Tx, op idempotency.Operation) (idempotency.Answer, error) {
			leave()
			return created(), tx.Exec("INSERT INTO idemtest_counters VALUES (?, 'after', 1)", op.AccountID).Error
		}))
		c.wantExecuted(got, err)
		c.wantRows("k", 1, 1)
		c.wantOutcome(c.do(x, c.request("k", 1), w.apply), idempotency.OutcomeReplayed)
	})
	t.Run("a caller that has left before leaves nothing or all of it", func(t *testing.T) {
		c := l.caller(t)
		gone, leave := context.WithCancel(t.Context())
		leave()
		var w work
		got, err := x.Do(gone, c.request("k", 1), w.apply)
		done := 0
		if err == nil && got.Outcome == idempotency.OutcomeExecuted {
			done = 1
		}
		c.wantRows("k", done, done)
		retry := c.do(x, c.request("k", 1), w.apply)
		c.wantRows("k", 1, 1)
		if _, err := x.Do(gone, c.request("k", 1), w.apply); err == nil {
			t.Log("a replay reached a caller that has left") // just as well
		}
		if retry.Operation.ID != c.stored("k").ID {
			t.Error("the retry has another operation")
		}
	})
	for name, limit := range map[string]func(context.Context) (context.Context, context.CancelFunc){
		"leaves": func(ctx context.Context) (context.Context, context.CancelFunc) { return context.WithCancel(ctx) },
		"has no time to wait": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 50*time.Millisecond)
		},
	} {
		t.Run("a caller that "+name+" while it waits returns at once, and the work goes on", func(t *testing.T) {
			c := l.caller(t)
			g := newGate()
			var w work
			var running sync.WaitGroup
			running.Go(func() {
				c.wantExecuted(x.Do(t.Context(), c.request("k", 1), w.ending(func(database.Tx, idempotency.Operation) (idempotency.Answer, error) {
					g.hold()
					return created(), nil
				})))
			})
			<-g.begun
			limited, leave := limit(t.Context())
			defer leave()
			ctx := watch(limited)
			ended := make(chan error, 1)
			go func() {
				_, err := x.Do(ctx, c.request("k", 1), w.apply)
				ended <- err
			}()
			<-ctx.waits
			if name == "leaves" {
				leave()
			}
			select {
			case err := <-ended:
				if !errors.Is(err, limited.Err()) || !errors.Is(err, database.ErrBusy) {
					t.Errorf("got %v, want %v as ErrBusy: nothing was committed for it", err, limited.Err())
				}
			case <-time.After(10 * time.Second):
				t.Error("it still waits")
			}
			g.release()
			running.Wait()
			c.wantRows("k", 1, 1)
			c.wantOutcome(c.do(x, c.request("k", 1), w.apply), idempotency.OutcomeReplayed)
		})
	}
}
