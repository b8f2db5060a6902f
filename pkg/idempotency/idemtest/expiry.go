package idemtest

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

func testExpiry(t *testing.T, l *lab) {
	const retention = time.Hour
	var now clock
	now.set(time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC))
	db := l.connect(t, database.Options{Clock: now.read})
	executor := func() *idempotency.Executor {
		return idempotency.New(db, idempotency.Options{ResponseRetention: retention})
	}
	x := executor()

	t.Run("an answer is replayed to the end of its retention, and after it the key is expired, never run again", func(t *testing.T) {
		c := l.caller(t)
		var w work
		first := c.do(x, c.request("k", 1), w.apply)
		now.advance(retention)
		for _, x := range []*idempotency.Executor{x, executor()} { // one that has seen the operation, one that has not
			c.wantOutcome(c.do(x, c.request("k", 1), w.apply), idempotency.OutcomeReplayed)
		}
		now.advance(time.Second)
		for _, x := range []*idempotency.Executor{x, executor()} {
			got := c.do(x, c.request("k", 1), w.apply)
			c.wantOutcome(got, idempotency.OutcomeExpired)
			if got.Operation.ID != first.Operation.ID || got.Operation.State != idempotency.Succeeded {
				t.Errorf("names operation %s in state %s", got.Operation.ID, got.Operation.State)
			}
			if got.Answer.Status != 0 || got.Answer.Body != nil {
				t.Errorf("answers %d %s", got.Answer.Status, got.Answer.Body)
			}
		}
		now.advance(1000 * 24 * time.Hour)
		c.wantOutcome(c.do(x, c.request("k", 1), w.apply), idempotency.OutcomeExpired)
		c.wantRows("k", 1, 1)
	})
	t.Run("a failure expires as a success does", func(t *testing.T) {
		c := l.caller(t)
		var w work
		c.do(x, c.request("k", 1), w.failing(&idempotency.Refusal{Answer: refused(), Final: true}))
		now.advance(retention + time.Second)
		c.wantOutcome(c.do(x, c.request("k", 1), w.apply), idempotency.OutcomeExpired)
		c.wantRows("k", 0, 1)
	})
	t.Run("an answer whose body was dropped is expired, whatever the clock says", func(t *testing.T) {
		c := l.caller(t)
		var w work
		c.do(x, c.request("k", 1), w.apply)
		l.exec(t, "UPDATE operations SET response_body = NULL, response_expired_at = updated_at WHERE account_id = ?", c.account)
		for _, back := range []time.Duration{0, -2 * retention} {
			now.advance(back)
			for _, x := range []*idempotency.Executor{x, executor()} {
				c.wantOutcome(c.do(x, c.request("k", 1), w.apply), idempotency.OutcomeExpired)
			}
		}
		c.wantRows("k", 1, 1)
	})
	t.Run("another command under an expired key is a conflict still", func(t *testing.T) {
		c := l.caller(t)
		var w work
		c.do(x, c.request("k", 1), w.apply)
		now.advance(retention + time.Second)
		c.wantOutcome(c.do(x, c.request("k", 2), w.apply), idempotency.OutcomeConflict)
		c.wantRows("k", 1, 1)
	})
	t.Run("an operation without a final answer never expires; its retention runs from that answer", func(t *testing.T) {
		c := l.caller(t)
		var w work
		c.do(x, c.request("k", 1), w.answering(idempotency.Answer{State: idempotency.Queued}))
		now.advance(100 * retention)
		got := c.do(x, c.request("k", 1), w.apply)
		c.wantOutcome(got, idempotency.OutcomeInProgress)
		err := db.InTx(t.Context(), func(tx database.Tx) error { return x.Settle(tx, got.Operation, idempotency.Queued, created()) })
		if err != nil {
			t.Fatal(err)
		}
		now.advance(retention)
		c.wantOutcome(c.do(x, c.request("k", 1), w.apply), idempotency.OutcomeReplayed)
		now.advance(time.Second)
		c.wantOutcome(c.do(x, c.request("k", 1), w.apply), idempotency.OutcomeExpired)
		c.wantRows("k", 1, 1)
	})
}

// clock is a database's clock that a test moves.
type clock struct{ at atomic.Int64 }

func (c *clock) set(t time.Time)         { c.at.Store(t.UnixMicro()) }
func (c *clock) advance(d time.Duration) { c.at.Add(d.Microseconds()) }
func (c *clock) read() time.Time         { return time.UnixMicro(c.at.Load()) }
