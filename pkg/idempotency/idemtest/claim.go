package idemtest

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

func testClaim(t *testing.T, l *lab) {
	x := idempotency.New(l.db, idempotency.Options{})

	t.Run("a first attempt is executed, and its operation tells who, what and when", func(t *testing.T) {
		c := l.caller(t)
		req := c.request("k", 1)
		var w work
		result := c.do(x, req, w.apply)
		c.wantOutcome(result, idempotency.OutcomeExecuted)
		c.wantRows("k", 1, 1)
		fingerprint, err := req.Command.Fingerprint()
		if err != nil {
			t.Fatal(err)
		}
		got := c.stored("k")
		want := idempotency.Operation{
			AccountID: c.account, IdempotencyKey: "k", ID: got.ID, Type: "thing.create", State: idempotency.Succeeded,
			Fingerprint: fingerprint, Route: "POST /v1/things", Principal: "tester", AgentRun: "run-1", RequestID: "req-1",
			Resource: result.Answer.Resource, ResponseStatus: 201, ResponseLocation: result.Answer.Location, ResponseBody: result.Answer.Body,
			CreatedAt: got.CreatedAt, UpdatedAt: got.CreatedAt, CompletedAt: &got.CreatedAt,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("stored (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(want, result.Operation); diff != "" {
			t.Errorf("returned (-want +got):\n%s", diff)
		}
	})
	t.Run("it is claimed before anything else is written, under the id that it keeps", func(t *testing.T) {
		c := l.caller(t)
		var id string
		result := c.do(x, c.request("k", 1), func(tx database.Tx, op idempotency.Operation) (idempotency.Answer, error) {
			err := tx.Raw("SELECT id FROM operations WHERE account_id = ? AND idempotency_key = 'k'", c.account).Scan(&id).Error
			if id != op.ID {
				t.Errorf("claimed as %q, told %q", id, op.ID)
			}
			return created(), err
		})
		if stored := c.stored("k"); stored.ID != id || result.Operation.ID != id {
			t.Errorf("claimed as %q, stored as %q, returned as %q", id, stored.ID, result.Operation.ID)
		}
	})
	t.Run("one key of two accounts names two operations", func(t *testing.T) {
		one, two := l.caller(t), l.caller(t)
		var w work
		one.wantOutcome(one.do(x, one.request("k", 1), w.apply), idempotency.OutcomeExecuted)
		two.wantOutcome(two.do(x, two.request("k", 1), w.apply), idempotency.OutcomeExecuted)
		two.wantOutcome(two.do(x, two.request("k", 1), w.apply), idempotency.OutcomeReplayed)
		one.wantRows("k", 1, 1)
		two.wantRows("k", 1, 1)
	})
	t.Run("two keys of one command name two operations, however alike they are", func(t *testing.T) {
		c := l.caller(t)
		var w work
		for _, key := range []idempotency.Key{"k", "K", "k.", "k'", `k"`, `k\`, "k%", "k_", "k?", "$1"} {
			c.wantOutcome(c.do(x, c.request(key, 1), w.apply), idempotency.OutcomeExecuted)
			c.wantRows(key, 1, 1)
		}
	})
	t.Run("nothing runs without a key or an account", func(t *testing.T) {
		c := l.caller(t)
		nobody := c.request("k", 1)
		nobody.Command.Account = ""
		for _, req := range []idempotency.Request{c.request("", 1), nobody} {
			var w work
			if result, err := x.Do(t.Context(), req, w.apply); err == nil || w.runs.Load() != 0 {
				t.Errorf("key %q of %q: %s, ran %d times", req.Key, req.Command.Account, result.Outcome, w.runs.Load())
			}
		}
		if _, err := x.Do(t.Context(), c.request("", 1), nil); !errors.Is(err, idempotency.ErrKeyMissing) {
			t.Errorf("got %v, want ErrKeyMissing", err)
		}
	})
	t.Run("an operation begins only in a state that it may be born in, a final one only with a status", func(t *testing.T) {
		c := l.caller(t)
		for _, answer := range []idempotency.Answer{
			{},
			{State: idempotency.Running},
			{State: idempotency.Unknown},
			{State: idempotency.Canceled, Status: 409},
			{State: "odd", Status: 200},
			{State: idempotency.Succeeded},
			{State: idempotency.Failed},
		} {
			var w work
			if result, err := x.Do(t.Context(), c.request("k", 1), w.answering(answer)); err == nil {
				t.Errorf("%+v was accepted as %s", answer, result.Outcome)
			}
			c.wantRows("k", 0, 0)
		}
	})
}
