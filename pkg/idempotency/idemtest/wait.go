package idemtest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

func testWait(t *testing.T, l *lab) {
	t.Run("64 duplicates of slow work hold no connection: everybody else goes on", func(t *testing.T) {
		c := l.caller(t)
		db := l.connect(t, database.Options{MaxConns: 2})
		x := idempotency.New(db, idempotency.Options{WaitBudget: time.Minute, WorkTimeout: time.Minute})
		var w, others work
		for i := range 20 { // replays only read, so that they go on in SQLite, too, where the slow one is the only writer
			c.do(x, c.request(key("done", i), 1), others.apply)
		}
		slow := c.slow(x, "k", &w, crowd)
		for i := range 20 {
			c.wantOutcome(c.do(x, c.request(key("done", i), 1), others.apply), idempotency.OutcomeReplayed)
			if l.postgres() {
				c.wantOutcome(c.do(x, c.request(key("new", i), 1), others.apply), idempotency.OutcomeExecuted)
			}
		}
		if in := db.SQL().Stats().InUse; in != 1 {
			t.Errorf("%d connections in use, want the slow one's only", in)
		}
		c.wantOneExecution("k", slow())
		if w.runs.Load() != 1 {
			t.Errorf("ran %d times", w.runs.Load())
		}
	})
	t.Run("a duplicate waits no longer than its budget, and is told that it is in progress", func(t *testing.T) {
		c := l.caller(t)
		x := idempotency.New(l.db, idempotency.Options{WaitBudget: 50 * time.Millisecond, WorkTimeout: time.Minute})
		var w work
		g := newGate()
		var running sync.WaitGroup
		running.Go(func() {
			c.wantExecuted(x.Do(t.Context(), c.request("k", 1), w.ending(func(database.Tx, idempotency.Operation) (idempotency.Answer, error) {
				g.hold()
				return created(), nil
			})))
		})
		<-g.begun
		start := time.Now()
		got := c.do(x, c.request("k", 1), w.apply)
		if got.Outcome != idempotency.OutcomeInProgress || got.Operation.ID != "" || got.Answer.Status != 0 {
			t.Errorf("got %+v", got)
		}
		if took := time.Since(start); took < 50*time.Millisecond || took > 5*time.Second {
			t.Errorf("told after %v", took)
		}
		g.release()
		running.Wait()
		c.wantOutcome(c.do(x, c.request("k", 1), w.apply), idempotency.OutcomeReplayed)
		c.wantRows("k", 1, 1)
	})
	t.Run("a waiter is answered from the database, not with the first attempt's answer", func(t *testing.T) {
		c := l.caller(t)
		x := idempotency.New(l.db, idempotency.Options{WaitBudget: time.Minute, WorkTimeout: time.Minute})
		l.atCompletion(t, "other", "UPDATE operations SET response_body = 'the database says' WHERE account_id = NEW.account_id AND idempotency_key = NEW.idempotency_key")
		var w work
		for _, r := range c.slow(x, "other", &w, 8)() {
			if r.Outcome == idempotency.OutcomeReplayed && string(r.Answer.Body) != "the database says" {
				t.Errorf("a waiter was told %s", r.Answer.Body)
			}
		}
		c.wantRows("other", 1, 1)
	})
	t.Run("a waiter whose first attempt is not in the database, whatever it was told, executes itself", func(t *testing.T) {
		c := l.caller(t)
		x := idempotency.New(l.db, idempotency.Options{WaitBudget: time.Minute, WorkTimeout: time.Minute})
		l.atCompletion(t, "lost", "DELETE FROM operations WHERE account_id = NEW.account_id AND idempotency_key = NEW.idempotency_key")
		var w work
		for _, r := range c.slow(x, "lost", &w, 3)() {
			c.wantOutcome(r, idempotency.OutcomeExecuted)
		}
		c.wantRows("lost", 4, 0)
	})
}

// slow makes a first attempt, and n duplicates of it that are all waiting when slow returns. What it returns lets the work
// end, and returns what became of all of them.
func (c *caller) slow(x *idempotency.Executor, k idempotency.Key, w *work, n int) (end func() []idempotency.Result) {
	c.t.Helper()
	g := newGate()
	results := make([]idempotency.Result, n+1)
	var all sync.WaitGroup
	attempt := func(i int, ctx context.Context, apply idempotency.Apply) {
		all.Go(func() {
			var err error
			if results[i], err = x.Do(ctx, c.request(k, 1), apply); err != nil {
				c.t.Errorf("attempt %d: %v", i, err)
			}
		})
	}
	attempt(0, c.t.Context(), w.ending(func(database.Tx, idempotency.Operation) (idempotency.Answer, error) {
		g.hold()
		return created(), nil
	}))
	<-g.begun
	for i := range n {
		ctx := watch(c.t.Context())
		attempt(i+1, ctx, w.apply)
		<-ctx.waits
	}
	return func() []idempotency.Result {
		g.release()
		all.Wait()
		return results
	}
}

// atCompletion makes the database itself run a statement when the operation of a key completes, in its transaction: what is
// committed is then not what the attempt has in mind.
func (l *lab) atCompletion(t *testing.T, k idempotency.Key, statement string) {
	t.Helper()
	name := "idemtest_" + string(k)
	when := fmt.Sprintf("AFTER UPDATE OF state ON operations FOR EACH ROW WHEN (NEW.idempotency_key = '%s' AND NEW.state = 'succeeded')", k)
	if !l.postgres() {
		l.exec(t, fmt.Sprintf("CREATE TRIGGER %s %s BEGIN %s; END", name, when, statement))
		return
	}
	l.exec(t, fmt.Sprintf("CREATE FUNCTION %s() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN %s; RETURN NULL; END $$", name, statement))
	l.exec(t, fmt.Sprintf("CREATE TRIGGER %s %s EXECUTE FUNCTION %s()", name, when, name))
}

func key(name string, i int) idempotency.Key { return idempotency.Key(fmt.Sprintf("%s-%d", name, i)) }
