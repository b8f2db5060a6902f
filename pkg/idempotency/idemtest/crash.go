package idemtest

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

func testCrash(t *testing.T, l *lab) {
	t.Run("a connection that dies in the middle leaves nothing, and the same key works", func(t *testing.T) {
		if !l.postgres() {
			t.Skip("SQLite has no connections that die by themselves")
		}
		c := l.caller(t)
		x := idempotency.New(l.db, idempotency.Options{})
		var w work
		for range 3 {
			// Until the server has cleaned up after the session, the next attempt is told that the first is in progress.
			_, err := repeat(t.Context(), func() (idempotency.Result, error) {
				return x.Do(t.Context(), c.request("k", 1), w.ending(func(tx database.Tx, _ idempotency.Operation) (idempotency.Answer, error) {
					return created(), tx.Exec("SELECT pg_terminate_backend(pg_backend_pid())").Error
				}))
			})
			if !errors.Is(err, database.ErrUnavailable) {
				t.Errorf("got %v, want ErrUnavailable", err)
			}
			c.wantRows("k", 0, 0)
		}
		c.wantExecuted(repeat(t.Context(), func() (idempotency.Result, error) { return x.Do(t.Context(), c.request("k", 1), w.apply) }))
		c.wantRows("k", 1, 1)
	})
	if l.postgres() {
		testDeathInsideCommit(t, l)
	}
	t.Run("a replica that is frozen inside its claim: others are told soon, and execute once it is dead", func(t *testing.T) {
		c := l.caller(t)
		frozen := l.connect(t, database.Options{})
		lockTimeout := 100 * time.Millisecond
		if l.postgres() {
			lockTimeout = time.Minute // nobody waits for the lock: that would hold a connection
		}
		living := idempotency.New(l.connect(t, database.Options{LockTimeout: lockTimeout}), idempotency.Options{})
		g := newGate()
		pids := make(chan int, 1)
		var theirs, ours work
		var running sync.WaitGroup
		running.Go(func() {
			got, err := idempotency.New(frozen, idempotency.Options{}).Do(t.Context(), c.request("k", 1),
				theirs.ending(func(tx database.Tx, _ idempotency.Operation) (idempotency.Answer, error) {
					if l.postgres() {
						var pid int
						if err := tx.Raw("SELECT pg_backend_pid()").Scan(&pid).Error; err != nil {
							t.Error(err)
						}
						pids <- pid
					}
					g.hold()
					return created(), errors.New("dead") // as far as SQLite can tell
				}))
			if err == nil {
				t.Errorf("the dead one got %s", got.Outcome)
			}
		})
		<-g.begun
		start := time.Now()
		got, err := living.Do(t.Context(), c.request("k", 1), ours.apply)
		switch {
		case time.Since(start) > 5*time.Second:
			t.Errorf("told after %v", time.Since(start))
		case l.postgres() && (err != nil || got.Outcome != idempotency.OutcomeInProgress || got.Operation.ID != ""):
			t.Errorf("got %s, %v; want in_progress", got.Outcome, err)
		case !l.postgres() && !errors.Is(err, database.ErrBusy): // it can't look past the only writer
			t.Errorf("got %s, %v; want ErrBusy", got.Outcome, err)
		}
		if l.postgres() {
			var dead bool
			if err := l.db.Read(t.Context()).Raw("SELECT pg_terminate_backend(?, 10000)", <-pids).Scan(&dead).Error; err != nil || !dead {
				t.Fatalf("not dead: %v", err)
			}
			c.wantExecuted(living.Do(t.Context(), c.request("k", 1), ours.apply))
		}
		g.release()
		running.Wait()
		if !l.postgres() {
			c.wantExecuted(living.Do(t.Context(), c.request("k", 1), ours.apply))
		}
		c.wantRows("k", 1, 1)
	})
	t.Run("a claim that was committed without an answer stays what it is", func(t *testing.T) {
		// No Executor writes one; a row from elsewhere must not make it run anything.
		c := l.caller(t)
		x := idempotency.New(l.db, idempotency.Options{})
		var w work
		c.do(x, c.request("k", 1), w.apply)
		l.exec(t, "UPDATE operations SET state = 'running', completed_at = NULL, response_status = 0 WHERE account_id = ?", c.account)
		got := c.do(x, c.request("k", 1), w.apply)
		if got.Outcome != idempotency.OutcomeInProgress || got.Operation.State != idempotency.Running {
			t.Errorf("got %s in state %s", got.Outcome, got.Operation.State)
		}
		c.wantRows("k", 1, 1)
	})
}

// testDeathInsideCommit ends sessions from a trigger that PostgreSQL runs inside COMMIT: it is not done, and nobody says so.
func testDeathInsideCommit(t *testing.T, l *lab) {
	l.exec(t, `CREATE FUNCTION idemtest_die() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$`)
	l.exec(t, `CREATE CONSTRAINT TRIGGER idemtest_die AFTER INSERT ON idemtest_counters DEFERRABLE INITIALLY DEFERRED
		FOR EACH ROW WHEN (NEW.name = 'die') EXECUTE FUNCTION idemtest_die()`)
	dies := func(tx database.Tx, op idempotency.Operation) (idempotency.Answer, error) {
		return created(), tx.Exec("INSERT INTO idemtest_counters VALUES (?, 'die', 1)", op.AccountID).Error
	}
	x := idempotency.New(l.db, idempotency.Options{})

	t.Run("a session that dies inside COMMIT: the same attempt does the work again, under the same id, with one effect", func(t *testing.T) {
		c := l.caller(t)
		var w work
		var ids []string
		got := c.do(x, c.request("k", 1), w.ending(func(tx database.Tx, op idempotency.Operation) (idempotency.Answer, error) {
			ids = append(ids, op.ID)
			if len(ids) == 1 {
				return dies(tx, op)
			}
			return created(), nil
		}))
		c.wantOutcome(got, idempotency.OutcomeExecuted)
		c.wantRows("k", 1, 1)
		if len(ids) != 2 || ids[0] != ids[1] || c.stored("k").ID != ids[0] {
			t.Errorf("ran as %q, stored as %q", ids, c.stored("k").ID)
		}
	})
	t.Run("and if it dies each time, the outcome is unknown, and the next attempt finds out", func(t *testing.T) {
		c := l.caller(t)
		var w work
		if got, err := x.Do(t.Context(), c.request("k", 1), w.ending(dies)); !errors.Is(err, database.ErrCommitUnknown) {
			t.Errorf("got %s, %v; want ErrCommitUnknown", got.Outcome, err)
		}
		c.wantRows("k", 0, 0)
		c.wantExecuted(repeat(t.Context(), func() (idempotency.Result, error) { return x.Do(t.Context(), c.request("k", 1), w.apply) }))
		c.wantRows("k", 1, 1)
	})
}
