package idemtest

import (
	cmp2 "cmp"
	"errors"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

func testSettle(t *testing.T, l *lab) {
	x := idempotency.New(l.db, idempotency.Options{})
	thing := idempotency.Resource{Type: "thing", ID: "thing_1", Href: "/v1/things/thing_1"}
	// accept makes an operation whose effect is to come.
	accept := func(t *testing.T, c *caller, initial idempotency.State) idempotency.Operation {
		t.Helper()
		var w work
		got := c.do(x, c.request("k", 1), w.answering(idempotency.Answer{State: initial, Resource: thing}))
		c.wantOutcome(got, idempotency.OutcomeAccepted)
		return got.Operation
	}
	settle := func(op idempotency.Operation, from idempotency.State, answer idempotency.Answer) error {
		return l.db.InTx(t.Context(), func(tx database.Tx) error { return x.Settle(tx, op, from, answer) })
	}

	for _, initial := range []idempotency.State{idempotency.Queued, idempotency.AwaitingApproval} {
		t.Run("an operation that is "+string(initial)+" is accepted, then in progress, then replayed as it was settled", func(t *testing.T) {
			c := l.caller(t)
			op := accept(t, c, initial)
			if op.State != initial || op.CompletedAt != nil || op.ResponseStatus != 0 || op.Resource != thing {
				t.Errorf("accepted as %+v", op)
			}
			var w work
			for _, x := range []*idempotency.Executor{x, idempotency.New(l.db, idempotency.Options{})} {
				again := c.do(x, c.request("k", 1), w.apply)
				c.wantOutcome(again, idempotency.OutcomeInProgress)
				if diff := cmp.Diff(op, again.Operation); diff != "" {
					t.Errorf("operation (-accepted +in progress):\n%s", diff)
				}
				if again.Answer.Status != 0 || again.Answer.Body != nil {
					t.Errorf("answers %d %s before there is an answer", again.Answer.Status, again.Answer.Body)
				}
			}
			c.wantOutcome(c.do(x, c.request("k", 2), w.apply), idempotency.OutcomeConflict)
			final := refused() // awaiting_approval can't succeed at once
			if err := settle(op, initial, final); err != nil {
				t.Fatal(err)
			}
			for _, x := range []*idempotency.Executor{x, idempotency.New(l.db, idempotency.Options{})} {
				replay := c.do(x, c.request("k", 1), w.apply)
				c.wantOutcome(replay, idempotency.OutcomeReplayed)
				final.Resource = thing // what it was about does not change with how it ended
				if diff := cmp.Diff(final, replay.Answer); diff != "" {
					t.Errorf("answer (-settled +replayed):\n%s", diff)
				}
			}
			c.wantRows("k", 1, 1)
			if w.runs.Load() != 0 {
				t.Error("a retry ran the work")
			}
		})
	}
	t.Run("of 16 concurrent settlers one wins, the others hear that the state has changed", func(t *testing.T) {
		c := l.caller(t)
		op := accept(t, c, idempotency.Queued)
		answers := make([]idempotency.Answer, 16)
		errs := make([]error, len(answers))
		var all sync.WaitGroup
		for i := range answers {
			answers[i] = created()
			if i%2 == 1 {
				answers[i] = refused()
			}
			all.Go(func() { errs[i] = settle(op, idempotency.Queued, answers[i]) })
		}
		all.Wait()
		won := -1
		for i, err := range errs {
			switch {
			case err == nil && won >= 0:
				t.Errorf("%d and %d both won", won, i)
			case err == nil:
				won = i
			case !errors.Is(err, idempotency.ErrStateChanged):
				t.Errorf("settler %d: %v", i, err)
			}
		}
		if won < 0 {
			t.Fatal("nobody won")
		}
		answers[won].Resource = cmp2.Or(answers[won].Resource, thing)
		if diff := cmp.Diff(answers[won], c.stored("k").Answer()); diff != "" {
			t.Errorf("answer (-winner's +stored):\n%s", diff)
		}
	})
	t.Run("only moves of the table are made, only to an end, and an answer that is there stays", func(t *testing.T) {
		states := []idempotency.State{
			idempotency.AwaitingApproval, idempotency.Queued, idempotency.Running, idempotency.Succeeded, idempotency.Failed, idempotency.Canceled, idempotency.Unknown,
		}
		for _, row := range states {
			for _, from := range states {
				for _, to := range states {
					c := l.caller(t)
					op := accept(t, c, idempotency.Queued)
					c.put(row)
					before := c.stored("k")
					err := settle(op, from, answerIn(to))
					after := c.stored("k")
					allowed := from.CanBecome(to) && to.Final()
					switch {
					case allowed && !row.Final():
						if err != nil || after.State != to || after.CompletedAt == nil {
							t.Errorf("%s to %s, the row being %s: %v, state %s", from, to, row, err, after.State)
						}
					case err == nil || !cmp.Equal(before, after) || allowed && !errors.Is(err, idempotency.ErrStateChanged):
						t.Errorf("%s to %s, the row being %s, was made: %v, state %s", from, to, row, err, after.State)
					}
				}
			}
		}
	})
	t.Run("its effect knows the state that it leaves, and the event tells that one", func(t *testing.T) {
		c := l.caller(t)
		op := accept(t, c, idempotency.Queued) // and that is what the row says until the end
		var told []idempotency.Event
		x := idempotency.New(l.db, idempotency.Options{Record: func(_ database.Tx, events ...idempotency.Event) error {
			told = append(told, events...)
			return nil
		}})
		err := l.db.InTx(t.Context(), func(tx database.Tx) error { return x.Settle(tx, op, idempotency.Unknown, created()) })
		if err != nil || c.stored("k").State != idempotency.Succeeded {
			t.Errorf("%v, state %s", err, c.stored("k").State)
		}
		if len(told) != 1 || told[0].From != idempotency.Unknown || told[0].To != idempotency.Succeeded || told[0].Type != idempotency.Completed || told[0].OperationID != op.ID {
			t.Errorf("recorded %+v", told)
		}
	})
	t.Run("a settler that is too late changes nothing and records nothing", func(t *testing.T) {
		c := l.caller(t)
		op := accept(t, c, idempotency.Queued)
		if err := settle(op, idempotency.Running, created()); err != nil {
			t.Fatal(err)
		}
		before := c.stored("k")
		x := idempotency.New(l.db, idempotency.Options{Record: func(_ database.Tx, events ...idempotency.Event) error {
			t.Errorf("recorded %+v", events)
			return nil
		}})
		err := l.db.InTx(t.Context(), func(tx database.Tx) error { return x.Settle(tx, op, idempotency.Unknown, refused()) })
		if !errors.Is(err, idempotency.ErrStateChanged) {
			t.Errorf("got %v, want ErrStateChanged", err)
		}
		if diff := cmp.Diff(before, c.stored("k")); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("a final state without a status is refused", func(t *testing.T) {
		c := l.caller(t)
		op := accept(t, c, idempotency.Queued)
		if err := settle(op, idempotency.Queued, idempotency.Answer{State: idempotency.Succeeded}); err == nil || c.stored("k").State != idempotency.Queued {
			t.Errorf("got %v, state %s", err, c.stored("k").State)
		}
	})
	t.Run("settling vanishes with its transaction", func(t *testing.T) {
		c := l.caller(t)
		op := accept(t, c, idempotency.Queued)
		no := errors.New("no")
		err := l.db.InTx(t.Context(), func(tx database.Tx) error { return errors.Join(x.Settle(tx, op, idempotency.Queued, created()), no) })
		if !errors.Is(err, no) || c.stored("k").State != idempotency.Queued {
			t.Errorf("got %v, state %s", err, c.stored("k").State)
		}
	})
	t.Run("a row of another account under the same key is another row", func(t *testing.T) {
		one, two := l.caller(t), l.caller(t)
		op := accept(t, one, idempotency.Queued)
		accept(t, two, idempotency.Queued)
		if err := settle(op, idempotency.Queued, created()); err != nil {
			t.Fatal(err)
		}
		if s := two.stored("k").State; s != idempotency.Queued {
			t.Errorf("the other is %s", s)
		}
	})
}

// answerIn is an answer in a state, with what that state needs.
func answerIn(s idempotency.State) idempotency.Answer {
	if s.Final() {
		return idempotency.Answer{State: s, Status: 200, Body: []byte("{}")}
	}
	return idempotency.Answer{State: s}
}

// put puts an operation into a state, whatever the table says.
func (c *caller) put(s idempotency.State) {
	c.t.Helper()
	if s.Final() {
		c.exec(c.t, "UPDATE operations SET state = ?, response_status = 200, response_body = ?, completed_at = created_at WHERE account_id = ?", s, []byte("before"), c.account)
		return
	}
	c.exec(c.t, "UPDATE operations SET state = ? WHERE account_id = ?", s, c.account)
}
