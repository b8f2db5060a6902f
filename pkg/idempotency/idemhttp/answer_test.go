package idemhttp_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/problem"
	"github.com/einmal/einmal/pkg/server/servertest"
)

// told are the headers of an answer that say something about the operation.
func told(a servertest.Answer) map[string]string {
	all := map[string]string{}
	for _, name := range []string{"Content-Type", "Location", "Retry-After", "Operation-Id", "Idempotency-Outcome", "Idempotent-Replayed", "Idempotency-Executed-At"} {
		if values := a.Header.Values(name); len(values) > 0 {
			all[name] = strings.Join(values, " and ")
		}
	}
	return all
}

func TestWorkThatIsDone(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)
		first := s.post(t, key("k"), `{"name":"<é&\u2028>"}`)
		op := first.Header.Get("Operation-Id")
		var made struct {
			ID     string `json:"id"`
			Name   string `json:"name"`
			MadeAt string `json:"made_at"`
		}
		first.Decode(t, &made)

		t.Run("is answered with its resource", func(t *testing.T) {
			want := map[string]string{
				"Content-Type": "application/json", "Location": "/v1/things/thg_" + op, "Operation-Id": op, "Idempotency-Outcome": "executed",
			}
			if diff := cmp.Diff(want, told(first)); first.Status != 201 || diff != "" {
				t.Errorf("%s\n%s", first, diff)
			}
			if made.ID != "thg_"+op || !strings.HasPrefix(op, "op_") || made.Name != "<é&\u2028>" {
				t.Errorf("operation %s made %+v", op, made)
			}
		})

		t.Run("is replayed byte for byte, whoever of the account asks and however it is spelled", func(t *testing.T) {
			want := map[string]string{
				"Content-Type": "application/json", "Location": "/v1/things/thg_" + op, "Operation-Id": op, "Idempotency-Outcome": "replayed",
				"Idempotent-Replayed": "true", "Idempotency-Executed-At": made.MadeAt,
			}
			for _, token := range []string{"demo-agent", "demo-agent-2", "demo-operator"} {
				again := s.As(token).Send(t, "POST", "/v1/things", `{ "tags":["default"], "name":"\u003c\u00e9&\u2028>"}`, quoted("k"))
				if diff := cmp.Diff(want, told(again)); diff != "" || again.Status != 201 || string(again.Body) != string(first.Body) {
					t.Errorf("%s: %s\n%s", token, again, diff)
				}
			}
		})

		t.Run("was done once", func(t *testing.T) {
			if n := s.count(t, "things"); n != 1 {
				t.Errorf("%d times", n)
			}
		})

		t.Run("is another account's own under the same key", func(t *testing.T) {
			a := s.As("demo-globex").Send(t, "POST", "/v1/things", thing, key("k"))
			if a.Outcome() != "executed" || a.Header.Get("Operation-Id") == op {
				t.Errorf("%s", a)
			}
		})
	})
}

func TestWorkWithoutABody(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)
		first, second := s.post(t, key("k"), `{"name":"a","do":"nothing"}`), s.post(t, key("k"), `{"name":"a","do":"nothing"}`)
		if first.Status != 204 || second.Status != 204 || second.Outcome() != "replayed" || len(second.Body) > 0 {
			t.Errorf("%s, %s", first, second)
		}
		var op operation
		s.get(t, "/v1/operations", key("k")).Decode(t, &op)
		if diff := cmp.Diff(`{"status":204}`, string(op.Response)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestWorkThatIsAccepted(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)
		queue := `{"name":"a","do":"queue"}`
		first := s.post(t, key("k"), queue)
		id := first.Header.Get("Operation-Id")
		want := map[string]string{
			"Content-Type": "application/json", "Location": "/v1/operations/" + id, "Retry-After": "1", "Operation-Id": id, "Idempotency-Outcome": "accepted",
		}
		if diff := cmp.Diff(want, told(first)); first.Status != 202 || diff != "" {
			t.Errorf("first: %s\n%s", first, diff)
		}
		if op := s.get(t, "/v1/operations/"+id); string(op.Body) != string(first.Body) {
			t.Errorf("answered with %s, the operation is %s", first, op)
		}

		want["Idempotency-Outcome"] = "in_progress"
		for range 2 {
			again := s.post(t, key("k"), queue)
			if diff := cmp.Diff(want, told(again)); again.Status != 202 || diff != "" || string(again.Body) != string(first.Body) {
				t.Errorf("again: %s\n%s", again, diff)
			}
		}
		p := expect(t, "another command", s.post(t, key("k"), thing), 422, problem.IdempotencyKeyReused)
		if p.OperationID != id || p.OperationState != "queued" {
			t.Errorf("%+v", p)
		}

		s.view.put(id, idempotency.Running, idempotency.Effect{})
		if now := s.post(t, key("k"), queue); now.Status != 202 || now.Outcome() != "in_progress" || !strings.Contains(string(now.Body), `"state":"running"`) {
			t.Errorf("while it runs: %s", now)
		}
		if p := expect(t, "another command", s.post(t, key("k"), thing), 422, problem.IdempotencyKeyReused); p.OperationState != "running" {
			t.Errorf("while it runs: %+v", p)
		}

		s.settle(t, id, idempotency.Running, idempotency.Answer{State: idempotency.Succeeded, Status: 201, Location: "/v1/things/1", Body: []byte(`{"id":1}`)})
		final := s.post(t, key("k"), queue)
		if final.Status != 201 || final.Outcome() != "replayed" || string(final.Body) != `{"id":1}` || final.Header.Get("Location") != "/v1/things/1" {
			t.Errorf("when it is settled: %s", final)
		}
	})
}

// settle ends an operation as an outbox would.
func (s *things) settle(t *testing.T, id string, from idempotency.State, answer idempotency.Answer) {
	t.Helper()
	op, err := s.exec.ByID(t.Context(), "acme", id)
	if err != nil {
		t.Fatal(err)
	}
	answer.Resource = op.Resource
	if err := s.db.InTx(t.Context(), func(tx database.Tx) error { return s.exec.Settle(tx, op, from, answer) }); err != nil {
		t.Fatal(err)
	}
}

func TestWorkThatHasNotEnded(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		url := dbtest.URL(t, kind)
		s := startOn(t, dbtest.Connect(t, url, database.Options{}), idempotency.Options{WaitBudget: 50 * time.Millisecond})
		replica := startOn(t, dbtest.Connect(t, url, database.Options{LockTimeout: 50 * time.Millisecond}), idempotency.Options{})
		wait := `{"name":"a","do":"wait"}`
		var first servertest.Answer
		var caller sync.WaitGroup
		caller.Go(func() { first = s.post(t, key("k"), wait) })
		<-s.ran

		t.Run("makes a retry wait, and then ask again", func(t *testing.T) {
			again := s.post(t, key("k"), wait)
			p := expect(t, "again", again, 409, problem.OperationInProgress)
			want := map[string]string{"Content-Type": problem.ContentType, "Retry-After": "1", "Idempotency-Outcome": "in_progress"}
			if diff := cmp.Diff(want, told(again)); diff != "" {
				t.Error(diff)
			}
			if p.RetryAfterSeconds != 1 || p.Retry != problem.RetrySameKey || p.NextAction != problem.NextRetrySameKey || p.OperationID != "" {
				t.Errorf("advice: %+v", p)
			}
		})

		t.Run("is a conflict for another command at once, of which nothing is told", func(t *testing.T) {
			other := s.post(t, key("k"), `{"name":"b"}`)
			p := expect(t, "other", other, 422, problem.IdempotencyKeyReused)
			want := map[string]string{"Content-Type": problem.ContentType, "Idempotency-Outcome": "conflict"}
			if diff := cmp.Diff(want, told(other)); diff != "" {
				t.Error(diff)
			}
			if p.OperationID != "" || p.OperationState != "" || p.Effect != problem.EffectNone || p.Retry != problem.RetryNever {
				t.Errorf("%+v", p)
			}
		})

		t.Run("is in progress for another process, which can't wait for it in memory", func(t *testing.T) {
			for what, body := range map[string]string{"the same": wait, "another command": `{"name":"b"}`} { // it can't see which
				again := replica.post(t, key("k"), body)
				if kind == database.SQLite { // its one writer is at work, on whatever
					expect(t, what, again, 503, problem.StoreUnavailable)
					continue
				}
				if p := expect(t, what, again, 409, problem.OperationInProgress); p.RetryAfterSeconds != 1 || again.Outcome() != "in_progress" {
					t.Errorf("%s: %s", what, again)
				}
			}
		})

		t.Run("is no operation that can be asked for", func(t *testing.T) {
			expect(t, "by key", s.get(t, "/v1/operations", key("k")), 404, problem.OperationNotFound)
		})

		close(s.held)
		caller.Wait()
		if first.Status != 201 || first.Outcome() != "executed" {
			t.Errorf("the first attempt: %s", first)
		}
		if again := s.post(t, key("k"), wait); again.Outcome() != "replayed" || string(again.Body) != string(first.Body) {
			t.Errorf("afterwards: %s", again)
		}
	})
}

func TestAKeyNamesOneCommand(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)
		first := s.post(t, key("k"), `{"name":"the name is secret","labels":{"a":"secret"}}`)
		id := first.Header.Get("Operation-Id")
		stored, err := s.exec.ByID(t.Context(), "acme", id)
		if err != nil {
			t.Fatal(err)
		}
		put := func(path, body string) servertest.Answer {
			return s.As("demo-agent").Send(t, "PUT", path, body, key("k"))
		}
		for what, a := range map[string]servertest.Answer{
			"another value":            s.post(t, key("k"), `{"name":"b"}`),
			"another case":             s.post(t, key("k"), `{"name":"The name is secret","labels":{"a":"secret"}}`),
			"another normal form":      s.post(t, key("k"), `{"name":"the name is secret\u0301","labels":{"a":"secret"}}`),
			"one member more":          s.post(t, key("k"), `{"name":"the name is secret","labels":{"a":"secret"},"note":""}`),
			"another label":            s.post(t, key("k"), `{"name":"the name is secret","labels":{"A":"secret"}}`),
			"another route":            put("/v1/things/1/part", `{"name":"the name is secret","labels":{"a":"secret"}}`),
			"another path of a route":  put("/v1/things/2/part", `{"name":"the name is secret","labels":{"a":"secret"}}`),
			"another who may write":    s.As("demo-operator").Send(t, "POST", "/v1/things", thing, key("k")),
			"another, then this again": s.post(t, key("k"), thing),
		} {
			p := expect(t, what, a, 422, problem.IdempotencyKeyReused)
			want := map[string]string{"Content-Type": problem.ContentType, "Operation-Id": id, "Idempotency-Outcome": "conflict"}
			if diff := cmp.Diff(want, told(a)); diff != "" {
				t.Errorf("%s:\n%s", what, diff)
			}
			if p.OperationID != id || p.OperationState != "succeeded" || p.Instance != "/v1/operations/"+id || p.NextAction != problem.NextStop {
				t.Errorf("%s: %+v", what, p)
			}
			for _, private := range []string{"secret", string(stored.Fingerprint), "things", "demo-agent"} {
				if strings.Contains(string(a.Body), private) {
					t.Errorf("%s: the answer tells %q: %s", what, private, a)
				}
			}
		}
		if n := s.count(t, "things"); n != 1 {
			t.Errorf("%d things", n)
		}
	})
}

func TestAnAnswerPastItsRetention(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		clock := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		s := startOn(t, dbtest.OpenWith(t, kind, database.Options{Clock: func() time.Time { return clock }}), idempotency.Options{ResponseRetention: time.Hour})
		done, refuse := `{"name":"a"}`, `{"name":"a","do":"refuse"}`
		ids := map[string]string{done: s.post(t, key("done"), done).Header.Get("Operation-Id"), refuse: s.post(t, key("no"), refuse).Header.Get("Operation-Id")}

		clock = clock.Add(time.Hour)
		if a := s.post(t, key("done"), done); a.Outcome() != "replayed" {
			t.Errorf("on its last microsecond: %s", a)
		}
		clock = clock.Add(time.Microsecond)

		gone := func(t *testing.T) {
			for _, c := range []struct {
				key, body, state string
				effect           problem.Effect
			}{{"done", done, "succeeded", problem.EffectApplied}, {"no", refuse, "failed", problem.EffectNone}} {
				a := s.post(t, key(c.key), c.body)
				p := expect(t, c.key, a, 410, problem.IdempotencyKeyExpired)
				want := map[string]string{"Content-Type": problem.ContentType, "Operation-Id": ids[c.body], "Idempotency-Outcome": "expired"}
				if diff := cmp.Diff(want, told(a)); diff != "" {
					t.Errorf("%s:\n%s", c.key, diff)
				}
				if p.OperationID != ids[c.body] || p.OperationState != c.state || p.Effect != c.effect || p.Retry != problem.RetryNever {
					t.Errorf("%s: %+v", c.key, p)
				}
			}
			if n := s.count(t, "things"); n != 1 {
				t.Errorf("%d things", n)
			}
		}
		t.Run("is gone, and the work is not done again", gone)

		t.Run("is not given by its operation either", func(t *testing.T) {
			var op operation
			s.get(t, "/v1/operations", key("done")).Decode(t, &op)
			if strings.Contains(string(op.Response), "body") || op.ResponseExpiredAt != "2026-01-01T01:00:00.000000Z" {
				t.Errorf("the operation: %+v", op)
			}
		})

		t.Run("is gone when it has been dropped, too", func(t *testing.T) {
			drop := "UPDATE operations SET response_body = NULL, response_expired_at = ?"
			if err := s.db.Read(t.Context()).Exec(drop, clock).Error; err != nil {
				t.Fatal(err)
			}
			gone(t)
			var op operation
			s.get(t, "/v1/operations", key("no")).Decode(t, &op)
			if string(op.Response) != `{"status":409}` || op.ResponseExpiredAt != "2026-01-01T01:00:00.000000Z" || op.NextAction != "new_operation" {
				t.Errorf("the operation: %+v", op)
			}
		})

		t.Run("is a conflict for another command still", func(t *testing.T) {
			expect(t, "other", s.post(t, key("done"), `{"name":"b"}`), 422, problem.IdempotencyKeyReused)
		})
	})
}
