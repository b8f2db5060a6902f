package idemtest

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

func testExpiry(t *testing.T, l *lab) {
	const retention, tombstone = time.Hour, 100 * time.Hour
	var now clock
	now.set(time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC))
	db := l.connect(t, database.Options{Clock: now.read})
	executor := func() *idempotency.Executor {
		return idempotency.New(db, idempotency.Options{ResponseRetention: retention, TombstoneRetention: tombstone})
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
	t.Run("a UUIDv7 of which nothing is known has expired when it is older than keys are remembered, and not a moment before", func(t *testing.T) {
		const horizon = retention + tombstone
		for _, age := range []time.Duration{-100 * 365 * 24 * time.Hour, -time.Hour, 0, time.Minute, 2 * time.Hour, horizon - time.Second, horizon} {
			c := l.caller(t)
			var w work
			k := uuid7(db.Now().Add(-age))
			c.wantOutcome(c.do(x, c.request(k, 1), w.apply), idempotency.OutcomeExecuted)
			c.wantRows(k, 1, 1)
		}
		for _, age := range []time.Duration{horizon + time.Second, 20 * 365 * 24 * time.Hour} {
			c := l.caller(t)
			var w work
			k := uuid7(db.Now().Add(-age))
			for _, spelled := range []idempotency.Key{k, idempotency.Key(strings.ToUpper(string(k)))} {
				got := c.do(x, c.request(spelled, 1), w.apply)
				c.wantOutcome(got, idempotency.OutcomeExpired)
				if got.Operation.ID != "" {
					t.Errorf("it names operation %s", got.Operation.ID)
				}
				if _, err := x.ByKey(t.Context(), c.account, spelled); !errors.Is(err, idempotency.ErrForgotten) {
					t.Errorf("by key: %v, want ErrForgotten", err)
				}
			}
			c.wantRows(k, 0, 0)
		}
	})
	t.Run("a key that is no UUIDv7 tells no time", func(t *testing.T) {
		old := string(uuid7(db.Now().Add(-20 * 365 * 24 * time.Hour)))
		for _, k := range []string{
			old[:14] + "4" + old[15:],        // version 4
			old[:19] + "c" + old[20:],        // another variant
			strings.ReplaceAll(old, "-", ""), // as a hash might look
			"op_" + old, old + "0", old[:35], // more, or less
			"g" + old[1:], strings.ReplaceAll(old, "-", "_"),
		} {
			c := l.caller(t)
			var w work
			c.wantOutcome(c.do(x, c.request(idempotency.Key(k), 1), w.apply), idempotency.OutcomeExecuted)
		}
	})
	t.Run("a UUIDv7 that is known is answered by what is known, however old it is", func(t *testing.T) {
		c := l.caller(t)
		var w work
		old := uuid7(db.Now())
		c.do(x, c.request(old, 1), w.answering(idempotency.Answer{State: idempotency.Queued}))
		now.advance(1000 * 24 * time.Hour)
		for _, x := range []*idempotency.Executor{x, executor()} {
			c.wantOutcome(c.do(x, c.request(old, 1), w.apply), idempotency.OutcomeInProgress)
			c.wantOutcome(c.do(x, c.request(old, 2), w.apply), idempotency.OutcomeConflict)
		}
		if _, err := x.ByKey(t.Context(), c.account, old); err != nil {
			t.Errorf("by key: %v", err)
		}
		other := l.caller(t) // to whom it is just an old key
		other.wantOutcome(other.do(x, other.request(old, 1), w.apply), idempotency.OutcomeExpired)
	})
	t.Run("a UUIDv7 has expired when keys as old were really forgotten, whatever the settings are now", func(t *testing.T) {
		until := db.Now().Add(-3 * time.Hour)
		x := idempotency.New(db, idempotency.Options{
			ResponseRetention: 1000 * time.Hour, Forgotten: func(context.Context) (time.Time, error) { return until, nil },
		})
		c := l.caller(t)
		var w work
		for age, want := range map[time.Duration]idempotency.Outcome{
			2 * time.Hour: idempotency.OutcomeExecuted, 3 * time.Hour: idempotency.OutcomeExpired, 4 * time.Hour: idempotency.OutcomeExpired,
		} {
			c.wantOutcome(c.do(x, c.request(uuid7(db.Now().Add(-age)), 1), w.apply), want)
		}
		failing := idempotency.New(db, idempotency.Options{Forgotten: func(context.Context) (time.Time, error) { return time.Time{}, database.ErrUnavailable }})
		_, err := failing.Do(t.Context(), c.request(uuid7(db.Now().Add(-2*time.Hour)), 2), w.apply)
		if !errors.Is(err, database.ErrUnavailable) {
			t.Errorf("while that can't be read: %v, want ErrUnavailable", err)
		}
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

// uuid7 is a key that tells when it was made, in whole milliseconds.
func uuid7(at time.Time) idempotency.Key {
	const prefix = "k"
	return idempotency.Key(idempotency.NewID(prefix, at.Add(time.Millisecond-1).Truncate(time.Millisecond))[len(prefix)+1:])
}

// clock is a database's clock that a test moves.
type clock struct{ at atomic.Int64 }

func (c *clock) set(t time.Time)         { c.at.Store(t.UnixMicro()) }
func (c *clock) advance(d time.Duration) { c.at.Add(d.Microseconds()) }
func (c *clock) read() time.Time         { return time.UnixMicro(c.at.Load()) }
