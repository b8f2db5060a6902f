package idemtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

// recorder keeps events as a service does: those of transactions in the database, the others beside it.
type recorder struct {
	seq   atomic.Int64
	fails error

	mu    sync.Mutex
	notes []idempotency.Event
}

func (r *recorder) record(tx database.Tx, events ...idempotency.Event) error {
	for _, e := range events {
		err := tx.AtCommit().Exec("INSERT INTO idemtest_events (account_id, seq, operation_id, type, to_state) VALUES (?, ?, ?, ?, ?)",
			e.Account, r.seq.Add(1), e.OperationID, e.Type, e.To).Error
		if err != nil {
			return err
		}
	}
	return r.fails
}

func (r *recorder) note(_ context.Context, e idempotency.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes = append(r.notes, e)
}

// noted are the types of the notes since the last call.
func (r *recorder) noted() (types []idempotency.EventType) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.notes {
		types = append(types, e.Type)
	}
	r.notes = nil
	return types
}

// recorded are the events of an account in the database, "type→state".
func (c *caller) recorded() (all []string) {
	c.t.Helper()
	var rows []struct{ Type, ToState string }
	err := c.db.Read(c.t.Context()).Raw("SELECT type, to_state FROM idemtest_events WHERE account_id = ? ORDER BY seq", c.account).Scan(&rows).Error
	if err != nil {
		c.t.Fatal(err)
	}
	for _, r := range rows {
		all = append(all, r.Type+"→"+r.ToState)
	}
	return all
}

func testEvent(t *testing.T, l *lab) {
	var r recorder
	x := idempotency.New(l.db, idempotency.Options{Record: r.record, Note: r.note, WaitBudget: 20 * time.Millisecond, ResponseRetention: time.Hour})
	want := func(t *testing.T, c *caller, recorded []string, noted ...idempotency.EventType) {
		t.Helper()
		if diff := cmp.Diff(recorded, c.recorded()); diff != "" {
			t.Errorf("recorded (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(noted, r.noted()); diff != "" {
			t.Errorf("noted (-want +got):\n%s", diff)
		}
	}

	for name, end := range map[string]struct {
		answer idempotency.Answer
		err    error
		want   []string
	}{
		"that succeeds":            {answer: created(), want: []string{"attempted→", "completed→succeeded"}},
		"that is queued":           {answer: idempotency.Answer{State: idempotency.Queued}, want: []string{"attempted→", "queued→queued"}},
		"that waits for a yes":     {answer: idempotency.Answer{State: idempotency.AwaitingApproval}, want: []string{"attempted→", "approval_requested→awaiting_approval"}},
		"that is refused for ever": {err: &idempotency.Refusal{Answer: refused(), Final: true}, want: []string{"attempted→", "completed→failed"}},
	} {
		t.Run("a first attempt "+name+" records that it was made and what came of it, and notes nothing", func(t *testing.T) {
			c := l.caller(t)
			var w work
			c.do(x, c.request("k", 1), w.ending(func(database.Tx, idempotency.Operation) (idempotency.Answer, error) { return end.answer, end.err }))
			want(t, c, end.want)
		})
	}
	t.Run("an attempt that leaves nothing records nothing", func(t *testing.T) {
		c := l.caller(t)
		var w work
		_, _ = x.Do(t.Context(), c.request("k", 1), w.failing(errors.New("boom")))
		recovering(func() {
			_, _ = x.Do(t.Context(), c.request("k", 1), w.ending(func(database.Tx, idempotency.Operation) (idempotency.Answer, error) { panic("boom") }))
		})
		want(t, c, nil)
	})
	t.Run("events that can't be recorded take everything with them", func(t *testing.T) {
		c := l.caller(t)
		full := recorder{fails: errors.New("full")}
		x := idempotency.New(l.db, idempotency.Options{Record: full.record})
		var w work
		if _, err := x.Do(t.Context(), c.request("k", 1), w.apply); !errors.Is(err, full.fails) {
			t.Errorf("got %v", err)
		}
		c.wantRows("k", 0, 0)
		want(t, c, nil)
	})
	t.Run("every other attempt is noted once, by what it met", func(t *testing.T) {
		c := l.caller(t)
		var now clock
		now.set(time.Now())
		x := idempotency.New(l.connect(t, database.Options{Clock: now.read}),
			idempotency.Options{Record: r.record, Note: r.note, WaitBudget: 20 * time.Millisecond, ResponseRetention: time.Hour})
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
		c.do(x, c.request("k", 1), w.apply)
		want(t, c, nil, idempotency.InProgress)
		c.do(x, c.request("k", 2), w.apply)
		want(t, c, nil, idempotency.Conflict)
		g.release()
		running.Wait()
		recorded := []string{"attempted→", "completed→succeeded"}
		want(t, c, recorded)
		fresh := idempotency.New(l.db, idempotency.Options{Record: r.record, Note: r.note})
		for _, x := range []*idempotency.Executor{x, fresh} {
			c.do(x, c.request("k", 1), w.apply)
			want(t, c, recorded, idempotency.Replayed)
			c.do(x, c.request("k", 2), w.apply)
			want(t, c, recorded, idempotency.Conflict)
		}
		c.do(x, c.request("refused", 1), w.failing(&idempotency.Refusal{Answer: refused()}))
		want(t, c, recorded, idempotency.Denied)
		now.advance(2 * time.Hour)
		c.do(x, c.request("k", 1), w.apply)
		want(t, c, recorded, idempotency.Expired)
	})
	t.Run("an attempt that meets an accepted operation is noted as in progress, and settling is recorded", func(t *testing.T) {
		c := l.caller(t)
		var w work
		op := c.do(x, c.request("k", 1), w.answering(idempotency.Answer{State: idempotency.Queued})).Operation
		c.do(x, c.request("k", 1), w.apply)
		want(t, c, []string{"attempted→", "queued→queued"}, idempotency.InProgress)
		if err := l.db.InTx(t.Context(), func(tx database.Tx) error { return x.Settle(tx, op, idempotency.Queued, created()) }); err != nil {
			t.Fatal(err)
		}
		want(t, c, []string{"attempted→", "queued→queued", "completed→succeeded"})
	})
	t.Run("a note tells who, what and which operation, and the key only as its hash", func(t *testing.T) {
		c := l.caller(t)
		var w work
		first := c.do(x, c.request("k", 1), w.apply)
		r.noted()
		other := c.request("k", 2)
		other.Principal, other.AgentRun, other.RequestID = "p2", "run-2", "req-2"
		c.do(x, other, w.apply)
		fingerprint, err := other.Command.Fingerprint()
		if err != nil {
			t.Fatal(err)
		}
		got := r.notes[0]
		want := idempotency.Event{
			Type: idempotency.Conflict, At: got.At, Account: c.account, Principal: "p2", AgentRun: "run-2", RequestID: "req-2", OperationID: first.Operation.ID,
			AttemptID: got.AttemptID, KeyHash: idempotency.Key("k").Hash(), Fingerprint: fingerprint, Route: "POST /v1/things",
		}
		if diff := cmp.Diff(want, got); diff != "" || got.AttemptID == "" || got.At.IsZero() {
			t.Error(diff, fmt.Sprintf("%+v", got))
		}
		r.noted()
	})
}
