package idemtest

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

func testFailure(t *testing.T, l *lab) {
	panics := func(database.Tx, idempotency.Operation) (idempotency.Answer, error) { panic("boom") }

	t.Run("twenty panics leave nothing: no row, no connection, no goroutine, and the key works", func(t *testing.T) {
		c := l.caller(t)
		before := goleak.IgnoreCurrent()
		db := l.connect(t, database.Options{MaxConns: 2})
		x := idempotency.New(db, idempotency.Options{})
		var w work
		for range 20 {
			if recovered := recovering(func() { _, _ = x.Do(t.Context(), c.request("k", 1), w.ending(panics)) }); recovered != "boom" {
				t.Errorf("recovered %v", recovered)
			}
		}
		c.wantRows("k", 0, 0)
		if in := db.SQL().Stats().InUse; in != 0 {
			t.Errorf("%d connections in use", in)
		}
		c.wantOutcome(c.do(x, c.request("k", 1), w.apply), idempotency.OutcomeExecuted)
		c.wantRows("k", 1, 1)
		db.Close()
		goleak.VerifyNone(t, before)
	})
	for name, end := range map[string]idempotency.Apply{
		"fails": func(database.Tx, idempotency.Operation) (idempotency.Answer, error) {
			return idempotency.Answer{}, errors.New("boom")
		},
		"panics": panics,
		"ends its goroutine": func(database.Tx, idempotency.Operation) (idempotency.Answer, error) {
			runtime.Goexit()
			panic("unreachable")
		},
		"is refused for now": func(database.Tx, idempotency.Operation) (idempotency.Answer, error) {
			return idempotency.Answer{}, &idempotency.Refusal{}
		},
		"swallows a failed statement": func(tx database.Tx, _ idempotency.Operation) (idempotency.Answer, error) {
			_ = tx.Exec("INSERT INTO nowhere VALUES (1)")
			return created(), nil
		},
	} {
		t.Run("an attempt that "+name+" wakes those that wait, and one of them executes", func(t *testing.T) {
			c := l.caller(t)
			x := idempotency.New(l.db, idempotency.Options{WaitBudget: time.Minute})
			g := newGate()
			var first, w work
			var all sync.WaitGroup
			all.Go(func() {
				defer func() { _ = recover() }()
				_, _ = x.Do(t.Context(), c.request("k", 1), first.ending(func(tx database.Tx, op idempotency.Operation) (idempotency.Answer, error) {
					g.hold()
					return end(tx, op)
				}))
			})
			<-g.begun
			results := make([]idempotency.Result, 8)
			for i := range results {
				ctx := watch(t.Context())
				all.Go(func() {
					var err error
					if results[i], err = x.Do(ctx, c.request("k", 1), w.apply); err != nil {
						t.Errorf("waiter %d: %v", i, err)
					}
				})
				<-ctx.waits
			}
			g.release()
			all.Wait()
			c.wantOneExecution("k", results)
			if first.runs.Load() != 1 || w.runs.Load() != 1 {
				t.Errorf("ran %d and %d times, want once each", first.runs.Load(), w.runs.Load())
			}
		})
	}
	t.Run("work that takes too long is ended, leaves nothing, and the same key works later", func(t *testing.T) {
		c := l.caller(t)
		db := l.connect(t, database.Options{MaxConns: 2})
		x := idempotency.New(db, idempotency.Options{WorkTimeout: 50 * time.Millisecond})
		var w work
		start := time.Now()
		got, err := x.Do(t.Context(), c.request("k", 1), w.ending(func(tx database.Tx, _ idempotency.Operation) (idempotency.Answer, error) {
			return created(), l.endless(tx)
		}))
		if !errors.Is(err, database.ErrBusy) || time.Since(start) > 10*time.Second {
			t.Errorf("got %s, %v after %v; want ErrBusy", got.Outcome, err, time.Since(start))
		}
		c.wantRows("k", 0, 0)
		if in := db.SQL().Stats().InUse; in != 0 {
			t.Errorf("%d connections in use", in)
		}
		later := idempotency.New(db, idempotency.Options{})
		result, err := repeat(t.Context(), func() (idempotency.Result, error) { return later.Do(t.Context(), c.request("k", 1), w.apply) })
		c.wantExecuted(result, err)
		c.wantRows("k", 1, 1)
	})
	t.Run("a retry does not wait longer than work may take for a database that gives no connection", func(t *testing.T) {
		c := l.caller(t)
		db := l.connect(t, database.Options{MaxConns: 1})
		x := idempotency.New(db, idempotency.Options{WorkTimeout: 50 * time.Millisecond})
		var w work
		c.do(x, c.request("k", 1), w.apply) // so that x looks before it claims
		conn, err := db.SQL().Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 2)
		for _, k := range []idempotency.Key{"k", "new"} {
			go func() {
				_, err := x.Do(context.Background(), c.request(k, 1), w.apply)
				ended <- err
			}()
		}
		for range 2 {
			select {
			case err := <-ended:
				if !errors.Is(err, database.ErrBusy) {
					t.Errorf("got %v, want ErrBusy", err)
				}
			case <-time.After(10 * time.Second):
				t.Error("an attempt still waits after 10 s")
			}
		}
		conn.Close()
	})
}

// endless is a statement that only its context ends.
func (l *lab) endless(tx database.Tx) error {
	if l.postgres() {
		return tx.Exec("SELECT pg_sleep(60)").Error
	}
	return tx.Exec("INSERT INTO idemtest_counters WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT 'a', 'b', max(i) FROM n").Error
}

func recovering(f func()) (recovered any) {
	defer func() { recovered = recover() }()
	f()
	return nil
}
