package outboxhttp_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/outbox"
	"github.com/einmal/einmal/pkg/problem"
	"github.com/einmal/einmal/pkg/server/servertest"
)

// told reads the operation that a cancel or a reconcile has answered with.
func told(t *testing.T, a servertest.Answer) (op operation) {
	t.Helper()
	a.Decode(t, &op)
	if a.Header.Get("Location") != "/v1/operations/"+op.ID || a.Outcome() != "executed" || a.Header.Get("Operation-Id") == op.ID {
		t.Errorf("%s %v", a, a.Header)
	}
	return op
}

// openStill fails the test unless the answer says that its operation goes on, and how long to wait.
func openStill(t *testing.T, a servertest.Answer) operation {
	t.Helper()
	op := told(t, a)
	if a.Status != 202 || a.Header.Get("Retry-After") != "1" || op.RetryAfterSeconds != 1 || op.NextAction != "poll_operation" {
		t.Errorf("%s, Retry-After %q", a, a.Header.Get("Retry-After"))
	}
	return op
}

func TestCancel(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		t.Run("ends what was not sent, and wakes who waits", func(t *testing.T) {
			s := start(t, kind, unable)
			id := s.accept(t, "k")
			settled := s.box.Settled(id)
			a := s.about(t, "cancel", id, "c")
			op := told(t, a)
			if a.Status != 200 || a.Header.Get("Retry-After") != "" || op.ID != id || op.State != "canceled" || op.Effect != "none" || op.NextAction != "stop" || len(op.Attempts) != 0 {
				t.Errorf("%s %v", a, a.Header)
			}
			woken(t, settled)
			replays(t, a, func() servertest.Answer { return s.about(t, "cancel", id, "c") })
			s.work(t)
			if got := s.operation(t, id); got.State != "canceled" || s.desk.called("send") != 0 {
				t.Errorf("%+v after %d sends", got, s.desk.called("send"))
			}
			no := s.about(t, "cancel", id, "again")
			expect(t, "again", no, 409, problem.OperationFinal)
			replays(t, no, func() servertest.Answer { return s.about(t, "cancel", id, "again") })
		})

		t.Run("tells of the sends that there were", func(t *testing.T) {
			s := start(t, kind, unable)
			s.desk.says(shows(outbox.Evidence{Finding: outbox.NotSent, Says: "come back", RetryAfter: time.Hour}), nil, nil)
			s.work(t)
			id := s.accept(t, "k")
			s.becomes(t, id, "was turned away", func(op operation) bool {
				return op.State == "queued" && cmp.Equal([]string{"not_sent"}, op.outcomes())
			})
			op := told(t, s.about(t, "cancel", id, "c"))
			if diff := cmp.Diff([]string{"not_sent"}, op.outcomes()); diff != "" || op.State != "canceled" || op.Attempts[0].Error != "come back" {
				t.Errorf("%+v %s", op, diff)
			}
		})

		t.Run("closes what may have been sent", func(t *testing.T) {
			s := start(t, kind, floored)
			release := make(chan struct{})
			s.desk.says(func() outbox.Evidence { <-release; return ambiguous }, nil, shows(outbox.Evidence{Finding: outbox.Closed}))
			s.work(t)
			id := s.accept(t, "k")
			s.becomes(t, id, "is being sent", func(op operation) bool { return op.State == "running" && s.desk.called("send") == 1 })
			a := s.about(t, "cancel", id, "c")
			op := openStill(t, a)
			if diff := cmp.Diff([]string{""}, op.outcomes()); diff != "" || op.ID != id || op.State != "running" || op.Effect != "unknown" || op.Target != "desk" || op.EffectKey == "" {
				t.Errorf("%+v %s", op, diff)
			}
			if s.desk.called("close") != 0 {
				t.Error("closed while the send was under way")
			}
			replays(t, a, func() servertest.Answer { return s.about(t, "cancel", id, "c") })
			close(release)
			s.becomes(t, id, "is unknown", in("unknown"))
			openStill(t, s.about(t, "cancel", id, "once-more")) // now it is not under way, and asked about at once
			s.becomes(t, id, "is canceled", in("canceled"))
			replays(t, a, func() servertest.Answer { return s.about(t, "cancel", id, "c") })
			if n := s.desk.called("send"); n != 1 {
				t.Errorf("%d sends", n)
			}
		})

		t.Run("waits for a process that serves the target", func(t *testing.T) {
			s := start(t, kind, unable)
			id := s.accept(t, "k")
			s.moveTo(t, "another desk")
			p := expect(t, "cancel", s.about(t, "cancel", id, "c"), 503, problem.TargetNotServed)
			if op := s.operation(t, id); p.Effect != "none" || p.Retry != problem.RetrySameKey || p.RetryAfterSeconds == 0 || op.State != "queued" {
				t.Errorf("%+v, and the operation: %+v", p, op)
			}
			s.moveTo(t, "desk")
			if op := told(t, s.about(t, "cancel", id, "c")); op.State != "canceled" {
				t.Errorf("%+v", op)
			}
		})

		t.Run("is refused for good where it may have happened and can't be closed", func(t *testing.T) {
			s := start(t, kind, lookedUp)
			s.desk.says(shows(ambiguous), nil, nil)
			s.work(t)
			id := s.accept(t, "k")
			s.becomes(t, id, "is unknown", in("unknown"))
			no := s.about(t, "cancel", id, "c")
			p := expect(t, "cancel", no, 409, problem.OperationRunning)
			if p.Title != "Operation is running" || p.OperationID != id || p.Instance != "/v1/operations/"+id || p.OperationState != "unknown" || p.Effect != "unknown" ||
				p.NextAction != problem.NextPollOperation || no.Header.Get("Operation-Id") == id {
				t.Errorf("%+v", p)
			}
			replays(t, no, func() servertest.Answer { return s.about(t, "cancel", id, "c") })
			if op := s.operation(t, id); op.State != "unknown" {
				t.Errorf("%+v", op)
			}
		})
	})
}

func TestReconcile(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		t.Run("asks now, and tells of the sends that there were", func(t *testing.T) {
			s := start(t, kind, lookedUp)
			s.desk.says(shows(ambiguous), shows(happened), nil)
			s.work(t)
			id := s.accept(t, "k")
			s.becomes(t, id, "is unknown", in("unknown"))
			a := s.about(t, "reconcile", id, "r")
			op := openStill(t, a)
			if diff := cmp.Diff([]string{"ambiguous"}, op.outcomes()); diff != "" || op.ID != id || op.State != "unknown" || op.Effect != "unknown" || op.Target != "desk" || op.EffectKey == "" {
				t.Errorf("%+v %s", op, diff)
			}
			s.becomes(t, id, "is found", in("succeeded"))
			replays(t, a, func() servertest.Answer { return s.about(t, "reconcile", id, "r") })
			if diff := cmp.Diff([]string{"reconciled unknown>succeeded by outbox"}, s.events(t, id, "reconciled")); diff != "" {
				t.Error(diff)
			}
			no := s.about(t, "reconcile", id, "again")
			p := expect(t, "again", no, 409, problem.OperationFinal)
			if p.OperationID != id || p.OperationState != "succeeded" || p.Effect != "applied" || p.NextAction != problem.NextStop || no.Header.Get("Operation-Id") == id {
				t.Errorf("%+v", p)
			}
			replays(t, no, func() servertest.Answer { return s.about(t, "reconcile", id, "again") })
		})

		t.Run("never takes a live lease", func(t *testing.T) {
			s := start(t, kind, lookedUp)
			release := make(chan struct{})
			s.desk.says(func() outbox.Evidence { <-release; return happened }, shows(outbox.Evidence{Finding: outbox.NotFound}), nil)
			s.work(t)
			id := s.accept(t, "k")
			s.becomes(t, id, "is being sent", func(op operation) bool { return s.desk.called("send") == 1 })
			for i := range 3 {
				if op := openStill(t, s.about(t, "reconcile", id, fmt.Sprintf("r%d", i))); op.State != "running" {
					t.Errorf("%+v", op)
				}
			}
			close(release)
			s.becomes(t, id, "has happened", in("succeeded"))
			if n := s.desk.called("lookup"); n != 0 {
				t.Errorf("%d look-ups beside a send under way", n)
			}
		})

		t.Run("of what ends at that moment came too late", func(t *testing.T) {
			s := start(t, kind, lookedUp)
			s.desk.says(shows(ambiguous), nil, nil)
			stop := s.work(t)
			id := s.accept(t, "k")
			s.becomes(t, id, "is unknown", in("unknown"))
			stop()
			var late servertest.Answer
			var asked sync.WaitGroup
			err := s.db.InTx(t.Context(), func(tx database.Tx) error { // on PostgreSQL it has read the effect, and waits to write
				if err := s.box.Decide(tx, "acme", id, idempotency.Failed, ""); err != nil {
					return err
				}
				asked.Go(func() { late = s.about(t, "reconcile", id, "r") })
				s.waitForWaiter(t, kind)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			asked.Wait()
			expect(t, "reconcile", late, 409, problem.OperationFinal)
			replays(t, late, func() servertest.Answer { return s.about(t, "reconcile", id, "r") })
		})

		t.Run("of what is queued changes nothing", func(t *testing.T) {
			s := start(t, kind, keyed)
			id := s.accept(t, "k")
			if op := openStill(t, s.about(t, "reconcile", id, "r")); op.State != "queued" || op.Effect != "none" {
				t.Errorf("%+v", op)
			}
		})
	})
}

// What is refused before the claim leaves the key free for the request that was meant.
func TestWhatIsRefusedUsesNoKeyUp(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind, keyed)
		id := s.accept(t, "k")
		local := s.about(t, "reconcile", id, "local").Header.Get("Operation-Id") // an operation without an effect
		before := s.count(t, "operations")
		for _, what := range []string{"cancel", "reconcile"} {
			path := func(id string) string { return "/v1/operations/" + id + "/" + what }
			for _, unknown := range []string{"op_1", "x", id + "0", "rev_1"} {
				expect(t, unknown, s.about(t, what, unknown, what), 404, problem.NotFound)
			}
			expect(t, "stranger", s.As("stranger").Send(t, "POST", path(id), "{}", key(what)), 404, problem.NotFound)
			expect(t, "nobody", s.As("").Send(t, "POST", path(id), "{}", key(what)), 401, problem.Unauthenticated)
			for _, role := range []string{"approver", "auditor"} {
				expect(t, role, s.As(role).Send(t, "POST", path(id), "{}", key(what)), 403, problem.Forbidden)
			}
			expect(t, "no key", s.As("agent").Send(t, "POST", path(id), "{}"), 400, problem.IdempotencyKeyMissing)
			for body, code := range map[string]problem.Code{
				``: problem.MalformedBody, `[]`: problem.MalformedBody, `{`: problem.MalformedBody, `{}{}`: problem.MalformedBody,
				`{"why":"x"}`: problem.ValidationFailed, `null`: problem.MalformedBody,
			} {
				status := 400
				if code == problem.ValidationFailed {
					status = 422
				}
				expect(t, body, s.As("agent").Send(t, "POST", path(id), body, key(what), "Content-Type: application/json"), status, code)
			}
			expect(t, "query", s.As("agent").Send(t, "POST", path(id)+"?now=1", "{}", key(what)), 422, problem.ValidationFailed)
		}
		if after := s.count(t, "operations"); after != before {
			t.Errorf("%d operations, and then %d", before, after)
		}
		for _, what := range []string{"cancel", "reconcile"} {
			no := s.about(t, what, local, what) // with the key of all the above
			expect(t, "an operation without an effect", no, 409, problem.OperationFinal)
			expect(t, "another operation under this key", s.about(t, what, id, what), 422, problem.IdempotencyKeyReused)
		}
		if op := told(t, s.As("operator").Send(t, "POST", "/v1/operations/"+id+"/cancel", "{}", key("operator's"))); op.State != "canceled" {
			t.Errorf("an operator may do all that an agent may: %+v", op)
		}
	})
}
