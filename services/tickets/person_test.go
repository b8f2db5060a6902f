package tickets_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/problem"
	"github.com/einmal/einmal/pkg/server/servertest"
	"github.com/einmal/einmal/services/tickets"
)

// replays makes sure that an answer is kept under its key, to the byte.
func replays(t *testing.T, first servertest.Answer, again func() servertest.Answer) {
	t.Helper()
	second := again()
	if second.Status != first.Status || string(second.Body) != string(first.Body) || second.Outcome() != "replayed" ||
		second.Header.Get("Operation-Id") != first.Header.Get("Operation-Id") || second.Header.Get("Location") != first.Header.Get("Location") {
		t.Errorf("first    %s\nreplayed %s", first, second)
	}
}

func (r running) cancel(t *testing.T, id, k string) servertest.Answer {
	t.Helper()
	return r.agent().Send(t, "POST", "/v1/operations/"+id+"/cancel", "{}", key("%s", k))
}

func (r running) reconcile(t *testing.T, id, k string) servertest.Answer {
	t.Helper()
	return r.agent().Send(t, "POST", "/v1/operations/"+id+"/reconcile", "{}", key("%s", k))
}

const (
	busy      = `{"target":"desk","operation":"send","when":"before","action":"status","status":429,"times":1000}`
	hangs     = `{"target":"desk","operation":"send","when":"before","action":"hang","times":1}`
	hangsDone = `{"target":"desk","operation":"send","when":"after","action":"hang","times":1}`
	resets    = `{"target":"desk","operation":"send","when":"after","action":"reset","times":1}`
)

func TestCancel(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		t.Run("ends at once what was not sent", func(t *testing.T) {
			s, d := mirroring(t, kind, "lookup")
			d.Arm(busy)
			made, id := s.mirrored(t, "k", "ops")
			s.becomes(t, id, "waits for another try", func(op operation) bool {
				return op.State == "queued" && len(op.Attempts) > 0 && op.Attempts[len(op.Attempts)-1].Outcome == "not_sent"
			})
			a := s.cancel(t, id, "c")
			var told operation
			a.Decode(t, &told)
			if a.Status != 200 || a.Outcome() != "executed" || told.ID != id || told.State != "canceled" || told.Effect != "none" || a.Header.Get("Location") != "/v1/operations/"+id {
				t.Errorf("%s", a)
			}
			replays(t, a, func() servertest.Answer { return s.cancel(t, id, "c") })
			op := s.operation(t, id)
			if op.State != "canceled" || op.Response.Status != 409 || !strings.Contains(string(op.Response.Body), `"code":"operation-canceled"`) {
				t.Errorf("the operation is %+v, answered %s", op, op.Response.Body)
			}
			if got := s.now(t, made.ID).Mirror; got.State != "canceled" {
				t.Errorf("the ticket's mirror is %+v", got)
			}
			no := s.cancel(t, id, "again")
			if p := expect(t, "again", no, 409, problem.OperationFinal); no.Outcome() != "refused" || p.OperationID != id || p.OperationState != "canceled" || no.Header.Get("Operation-Id") == id {
				t.Errorf("%s", no)
			}
			replays(t, no, func() servertest.Answer { return s.cancel(t, id, "again") })
			d.has(0)
			s.healthy(t)
		})

		t.Run("is refused for good where the effect may have happened and the desk can't close", func(t *testing.T) {
			s, d := mirroring(t, kind, "lookup", brisk)
			d.Arm(hangs)
			_, id := s.mirrored(t, "k", "ops")
			s.becomes(t, id, "is being sent", func(op operation) bool { return op.State == "running" || op.State == "unknown" })
			no := s.cancel(t, id, "c")
			expect(t, "cancel", no, 409, problem.OperationRunning)
			replays(t, no, func() servertest.Answer { return s.cancel(t, id, "c") })
			if op := s.operation(t, id); op.State == "canceled" {
				t.Errorf("it is %+v", op)
			}
			s.healthy(t)
		})

		for name, c := range map[string]struct {
			fault, state string
			tickets      int
		}{
			"closes what may have been sent, which then never happens": {hangs, "canceled", 0},
			"closes what has happened, and that stays what became":     {hangsDone, "succeeded", 1},
		} {
			t.Run(name, func(t *testing.T) {
				s, d := mirroring(t, kind, "close", brisk)
				d.Arm(c.fault)
				_, id := s.mirrored(t, "k", "ops")
				s.becomes(t, id, "is being sent", func(op operation) bool { return op.State == "running" })
				a := s.cancel(t, id, "c")
				var told operation
				a.Decode(t, &told)
				if a.Status != 202 || a.Outcome() != "executed" || told.ID != id || told.State != "running" || told.Effect != "unknown" || told.Target != "desk" || told.EffectKey == "" {
					t.Errorf("%s", a)
				}
				s.ends(t, id, c.state)
				replays(t, a, func() servertest.Answer { return s.cancel(t, id, "c") })
				d.has(c.tickets)
				s.healthy(t)
			})
		}

		t.Run("of what is not there, or another account's, uses no key up", func(t *testing.T) {
			s := start(t, kind)
			id := create(t, s.agent(), key("k"), `{"project":"ops","title":"t"}`).Header.Get("Operation-Id")
			for what, write := range map[string]func(client servertest.Client, id, k string) servertest.Answer{
				"cancel": func(client servertest.Client, id, k string) servertest.Answer {
					return client.Send(t, "POST", "/v1/operations/"+id+"/cancel", "{}", key("%s", k))
				},
				"reconcile": func(client servertest.Client, id, k string) servertest.Answer {
					return client.Send(t, "POST", "/v1/operations/"+id+"/reconcile", "{}", key("%s", k))
				},
			} {
				expect(t, what, write(s.agent(), "op_1", what), 404, problem.NotFound)
				expect(t, what, write(s.globex(), id, what), 404, problem.NotFound)
				if no := write(s.agent(), id, what); no.Outcome() != "refused" { // so the key was free
					expect(t, what, no, 409, problem.OperationFinal)
				}
				expect(t, what, write(s.As("demo-approver"), id, what+"2"), 403, problem.Forbidden)
				expect(t, what, s.agent().Send(t, "POST", "/v1/operations/"+id+"/"+what, `{"why":"x"}`, key("%s-3", what)), 422, problem.ValidationFailed)
				expect(t, what, s.agent().Send(t, "POST", "/v1/operations/"+id+"/"+what, `{}`), 400, problem.IdempotencyKeyMissing)
			}
			s.healthy(t)
		})
	})
}

// later looks for nothing by itself for an hour.
func later(c *tickets.Config) { c.ReconcileEvery = time.Hour }

func TestReconcile(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s, d := mirroring(t, kind, "lookup", later)
		d.Arm(resets)
		_, id := s.mirrored(t, "k", "ops")
		s.becomes(t, id, "is unknown", func(op operation) bool { return op.State == "unknown" })

		t.Run("asks now", func(t *testing.T) {
			a := s.reconcile(t, id, "r")
			var told operation
			a.Decode(t, &told)
			if a.Status != 202 || a.Outcome() != "executed" || told.ID != id || told.State != "unknown" || told.Effect != "unknown" || told.EffectKey == "" {
				t.Errorf("%s", a)
			}
			op := s.ends(t, id, "succeeded")
			if there := d.has(1); op.Reference != there.Reference || len(op.Attempts) != 1 {
				t.Errorf("the operation is %+v, the desk has %+v", op, there)
			}
			replays(t, a, func() servertest.Answer { return s.reconcile(t, id, "r") })
		})

		t.Run("of what has ended is refused for good", func(t *testing.T) {
			no := s.reconcile(t, id, "again")
			expect(t, "again", no, 409, problem.OperationFinal)
			replays(t, no, func() servertest.Answer { return s.reconcile(t, id, "again") })
		})
		s.healthy(t)
	})
}

// review is the resource as a client reads it.
type review struct {
	ID, Kind, Owner, State string
	OperationID            string `json:"operation_id"`
	ResolvedBy             string `json:"resolved_by"`
	Evidence               []struct{ Source, Says string }
}

func TestAReview(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s, d := mirroring(t, kind, "none")
		d.Arm(strings.Replace(resets, `"times":1`, `"times":3`, 1))
		withPerson := func(k string) (ticket, operation) {
			made, id := s.mirrored(t, k, "ops")
			return made, s.becomes(t, id, "is with a person", func(op operation) bool { return op.ReviewID != "" })
		}
		made, op := withPerson("one")
		_, other := withPerson("two")
		_, third := withPerson("three")
		list := func(t *testing.T, query string) (ids []string) {
			t.Helper()
			var page struct{ Items []review }
			s.agent().Send(t, "GET", "/v1/reviews"+query, "").Decode(t, &page)
			for _, r := range page.Items {
				ids = append(ids, r.ID)
			}
			return ids
		}
		resolve := func(t *testing.T, id, k, body string) servertest.Answer {
			t.Helper()
			return s.As("demo-operator").Send(t, "POST", "/v1/reviews/"+id+"/resolution", body, key("%s", k))
		}
		happened := `{"state":"succeeded","evidence":"seen at the desk","reference":"desk-4711"}`

		t.Run("is read by who reads the account, and by nobody else", func(t *testing.T) {
			var r review
			s.As("demo-approver").Send(t, "GET", "/v1/reviews/"+op.ReviewID, "").Decode(t, &r)
			if r.ID != op.ReviewID || r.Kind != "unknown" || r.OperationID != op.ID || r.State != "open" || r.Owner == "" || len(r.Evidence) != 2 || r.Evidence[0].Source != "desk" {
				t.Errorf("%+v", r)
			}
			want := []string{third.ReviewID, other.ReviewID, op.ReviewID}
			if diff := cmp.Diff(want, list(t, "?state=open")); diff != "" {
				t.Errorf("open (-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(want[:2], list(t, "?limit=2")); diff != "" {
				t.Errorf("first two (-want +got)\n%s", diff)
			}
			if got := list(t, "?state=resolved"); len(got) > 0 {
				t.Errorf("resolved: %v", got)
			}
			expect(t, "globex", s.globex().Send(t, "GET", "/v1/reviews/"+op.ReviewID, ""), 404, problem.NotFound)
			if a := s.globex().Send(t, "GET", "/v1/reviews", ""); string(a.Body) != `{"items":[]}` {
				t.Errorf("globex: %s", a)
			}
			for _, query := range []string{"?state=closed", "?state=", "?owner=x", "?state=open&state=open"} {
				expect(t, query, s.agent().Send(t, "GET", "/v1/reviews"+query, ""), 422, problem.ValidationFailed)
			}
		})

		t.Run("is resolved by an operator of its account only, with evidence and a state", func(t *testing.T) {
			path := "/v1/reviews/" + op.ReviewID + "/resolution"
			for _, token := range []string{"demo-agent", "demo-approver"} {
				expect(t, token, s.As(token).Send(t, "POST", path, happened, key("r")), 403, problem.Forbidden)
			}
			expect(t, "globex", s.As("demo-globex-operator").Send(t, "POST", path, happened, key("r")), 404, problem.NotFound)
			expect(t, "no review", resolve(t, "rev_1", "r", happened), 404, problem.NotFound)
			for body, pointer := range map[string]string{
				`{"state":"succeeded"}`: "/evidence", `{"state":"unknown","evidence":"e"}`: "/state", `{"evidence":"e"}`: "/state",
				`{"state":"failed","evidence":"` + strings.Repeat("e", 2001) + `"}`:                "/evidence",
				`{"state":"failed","evidence":"e","reference":"` + strings.Repeat("r", 256) + `"}`: "/reference",
			} {
				p := expect(t, body, resolve(t, op.ReviewID, "r", body), 422, problem.ValidationFailed)
				if len(p.Errors) != 1 || p.Errors[0].Pointer != pointer {
					t.Errorf("%s: %+v", body, p.Errors)
				}
			}
			if got := s.operation(t, op.ID); got.State != "unknown" {
				t.Errorf("the operation is %+v", got)
			}
		})

		t.Run("ends its operation, once", func(t *testing.T) {
			a := resolve(t, op.ReviewID, "r", happened) // none of the above has used the key up
			var r review
			a.Decode(t, &r)
			if a.Status != 200 || a.Outcome() != "executed" || r.State != "resolved" || r.ResolvedBy != "demo-operator" || len(r.Evidence) != 3 ||
				r.Evidence[2].Source != "demo-operator" || r.Evidence[2].Says != "seen at the desk" || a.Header.Get("Location") != "/v1/reviews/"+op.ReviewID {
				t.Errorf("%s", a)
			}
			replays(t, a, func() servertest.Answer { return resolve(t, op.ReviewID, "r", happened) })
			if got := s.operation(t, op.ID); got.State != "succeeded" || got.Reference != "desk-4711" {
				t.Errorf("the operation is %+v", got)
			}
			if got := s.now(t, made.ID).Mirror; got.State != "succeeded" || got.Reference != "desk-4711" {
				t.Errorf("the ticket's mirror is %+v", got)
			}
			no := resolve(t, op.ReviewID, "again", happened)
			expect(t, "again", no, 409, problem.ReviewResolved)
			replays(t, no, func() servertest.Answer { return resolve(t, op.ReviewID, "again", happened) })
			if diff := cmp.Diff([]string{op.ReviewID}, list(t, "?state=resolved")); diff != "" {
				t.Errorf("resolved (-want +got)\n%s", diff)
			}
		})

		t.Run("can find that nothing has happened", func(t *testing.T) {
			for state, about := range map[string]operation{"failed": other, "canceled": third} {
				if a := resolve(t, about.ReviewID, state, `{"state":"`+state+`","evidence":"the desk has none"}`); a.Status != 200 {
					t.Errorf("%s", a)
				}
				if got := s.operation(t, about.ID); got.State != state || got.Effect != "none" || got.Response.Status != 409 {
					t.Errorf("the operation is %+v", got)
				}
			}
		})
		s.healthy(t)
	})
}
