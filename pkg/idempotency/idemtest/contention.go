package idemtest

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

func testContention(t *testing.T, l *lab) {
	t.Run("a lock that apply does not get in time: busy, nothing is stored, and apply is not run again", func(t *testing.T) {
		c := l.caller(t)
		c.counter("n")
		x := idempotency.New(l.connect(t, database.Options{LockTimeout: 50 * time.Millisecond}), idempotency.Options{})
		var w work
		increment := w.ending(func(tx database.Tx, op idempotency.Operation) (idempotency.Answer, error) {
			return created(), add(tx, op.AccountID, "n")
		})
		err := l.db.InTx(t.Context(), func(tx database.Tx) error {
			if err := add(tx, c.account, "n"); err != nil {
				return err
			}
			if got, err := x.Do(t.Context(), c.request("k", 1), increment); !errors.Is(err, database.ErrBusy) {
				t.Errorf("got %s, %v; want ErrBusy", got.Outcome, err)
			}
			if runs := w.runs.Load(); runs > 1 {
				t.Errorf("ran %d times", runs)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		c.wantRows("k", 0, 0)
		c.wantOutcome(c.do(x, c.request("k", 1), increment), idempotency.OutcomeExecuted)
		c.wantRows("k", 1, 1)
		c.wantCounter("n", 2)
	})
	if !l.postgres() {
		return // one writer: nobody to lose against
	}
	t.Run("two operations that lock each other out are both executed, once", func(t *testing.T) {
		c := l.caller(t)
		c.counter("a")
		c.counter("b")
		x := idempotency.New(l.db, idempotency.Options{})
		var w work
		var both sync.WaitGroup // both hold their first lock
		both.Add(2)
		crossing := func(first, second string) idempotency.Apply {
			var once sync.Once
			return w.ending(func(tx database.Tx, op idempotency.Operation) (idempotency.Answer, error) {
				if err := add(tx, op.AccountID, first); err != nil {
					return idempotency.Answer{}, err
				}
				once.Do(func() {
					both.Done()
					both.Wait()
				})
				return created(), add(tx, op.AccountID, second)
			})
		}
		var all sync.WaitGroup
		for k, apply := range map[idempotency.Key]idempotency.Apply{"k1": crossing("a", "b"), "k2": crossing("b", "a")} {
			all.Go(func() {
				c.wantExecuted(untilWon(func() (idempotency.Result, error) { return x.Do(t.Context(), c.request(k, 1), apply) }))
			})
		}
		all.Wait()
		c.wantRows("k1", 1, 1)
		c.wantRows("k2", 1, 1)
		c.wantCounter("a", 2)
		c.wantCounter("b", 2)
		if w.runs.Load() < 3 {
			t.Errorf("ran %d times: they did not meet", w.runs.Load())
		}
	})
	t.Run("a race that is lost every time ends, with nothing stored", func(t *testing.T) {
		c := l.caller(t)
		x := idempotency.New(l.db, idempotency.Options{})
		var w work
		got, err := x.Do(t.Context(), c.request("k", 1), w.ending(func(tx database.Tx, _ idempotency.Operation) (idempotency.Answer, error) {
			return created(), lose(tx)
		}))
		if !errors.Is(err, database.ErrSerialization) {
			t.Errorf("got %s, %v; want ErrSerialization", got.Outcome, err)
		}
		if runs := w.runs.Load(); runs < 2 || runs > 10 {
			t.Errorf("ran %d times, want a few", runs)
		}
		c.wantRows("k", 0, 0)
		c.wantOutcome(c.do(x, c.request("k", 1), w.apply), idempotency.OutcomeExecuted)
	})
	t.Run("races that are lost twice are no news to the caller", func(t *testing.T) {
		c := l.caller(t)
		x := idempotency.New(l.db, idempotency.Options{})
		var w work
		got := c.do(x, c.request("k", 1), w.ending(func(tx database.Tx, _ idempotency.Operation) (idempotency.Answer, error) {
			if w.runs.Load() <= 2 {
				return created(), lose(tx)
			}
			return created(), nil
		}))
		c.wantOutcome(got, idempotency.OutcomeExecuted)
		c.wantRows("k", 1, 1)
	})
}

// untilWon makes an attempt until it is told something else than that it has lost a race: nothing of it is stored then.
func untilWon(attempt func() (idempotency.Result, error)) (idempotency.Result, error) {
	for {
		if result, err := attempt(); !errors.Is(err, database.ErrSerialization) {
			return result, err
		}
	}
}

// lose is what PostgreSQL says to a transaction that lost a race.
func lose(tx database.Tx) error {
	return tx.Exec("DO $$ BEGIN RAISE EXCEPTION 'lost' USING ERRCODE = '40001'; END $$").Error
}

// counter makes a row that several operations change.
func (c *caller) counter(name string) {
	c.t.Helper()
	c.exec(c.t, "INSERT INTO idemtest_counters VALUES (?, ?, 0)", c.account, name)
}

func (c *caller) wantCounter(name string, want int) {
	c.t.Helper()
	var n int
	err := c.db.Read(c.t.Context()).Raw("SELECT n FROM idemtest_counters WHERE account_id = ? AND name = ?", c.account, name).Scan(&n).Error
	if err != nil || n != want {
		c.t.Errorf("counter %s is %d, want %d; error %v", name, n, want, err)
	}
}

func add(tx database.Tx, account, name string) error {
	return tx.Exec("UPDATE idemtest_counters SET n = n + 1 WHERE account_id = ? AND name = ?", account, name).Error
}
