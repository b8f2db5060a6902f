package idemhttp_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/problem"
)

// operation is the resource as a client reads it.
type operation struct {
	ID                string          `json:"id"`
	Type              string          `json:"type"`
	State             string          `json:"state"`
	Effect            string          `json:"effect"`
	AgentRun          string          `json:"agent_run"`
	Resource          json.RawMessage `json:"resource"`
	Response          json.RawMessage `json:"response"`
	ResponseExpiredAt string          `json:"response_expired_at"`
	Attempts          json.RawMessage `json:"attempts"`
	CreatedAt         string          `json:"created_at"`
	UpdatedAt         string          `json:"updated_at"`
	NextAction        string          `json:"next_action"`
	RetryAfterSeconds int             `json:"retry_after_seconds"`
}

type object = map[string]any

// The members of an operation, exactly, in each state.
func TestAnOperation(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)
		declined := problem.New(problem.PaymentDeclined, "no").JSON()
		withdrawn := problem.New(problem.OperationCanceled, "no").JSON()
		final := func(state idempotency.State, status int, body []byte) func(id string) {
			return func(id string) {
				s.settle(t, id, idempotency.Queued, idempotency.Answer{State: state, Status: status, Body: body})
			}
		}
		known := func(state idempotency.State, effect idempotency.Effect) func(id string) {
			return func(id string) { s.view.put(id, state, effect) }
		}
		began := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
		ended := began.Add(time.Second)
		sends := []idempotency.Send{
			{ID: "try_1", StartedAt: began, EndedAt: &ended, Outcome: "ambiguous", Error: "no answer in time"},
			{ID: "try_2", StartedAt: ended, EndedAt: &ended, Outcome: "confirmed", Reference: "desk_1"},
			{ID: "try_3", StartedAt: ended},
		}
		toldSends := []any{
			object{"id": "try_1", "started_at": "2026-01-02T03:04:05.000006Z", "ended_at": "2026-01-02T03:04:06.000006Z", "outcome": "ambiguous", "error": "no answer in time"},
			object{"id": "try_2", "started_at": "2026-01-02T03:04:06.000006Z", "ended_at": "2026-01-02T03:04:06.000006Z", "outcome": "confirmed", "reference": "desk_1"},
			object{"id": "try_3", "started_at": "2026-01-02T03:04:06.000006Z"},
		}
		problemOf := func(body []byte) (o object) { _ = json.Unmarshal(body, &o); return o }

		for state, c := range map[string]struct {
			do   string
			then func(id string)
			want object
		}{
			"awaiting_approval": {"ask", nil, object{"effect": "none", "next_action": "ask_human", "retry_after_seconds": 60.0}},
			"queued":            {"queue", nil, object{"effect": "none", "next_action": "poll_operation", "retry_after_seconds": 1.0}},
			"queued again in doubt": {"queue", known("queued", idempotency.Effect{Target: "desk", Key: "e", InDoubt: true}), object{
				"state": "queued", "effect": "unknown", "next_action": "poll_operation", "retry_after_seconds": 1.0, "target": "desk", "effect_key": "e",
			}},
			"running": {"queue", known("running", idempotency.Effect{Target: "desk", Key: "e", InDoubt: true, Reference: "desk_1", Sends: sends}), object{
				"effect": "unknown", "next_action": "poll_operation", "retry_after_seconds": 1.0,
				"target": "desk", "effect_key": "e", "reference": "desk_1", "attempts": toldSends,
			}},
			"unknown": {"queue", known("unknown", idempotency.Effect{Target: "desk", Key: "e", InDoubt: true}), object{
				"effect": "unknown", "next_action": "poll_operation", "retry_after_seconds": 1.0, "target": "desk", "effect_key": "e",
			}},
			"unknown, in review": {"queue", known("unknown", idempotency.Effect{Target: "desk", Key: "e", InDoubt: true, ReviewID: "rev_1"}), object{
				"state": "unknown", "effect": "unknown", "next_action": "ask_human", "retry_after_seconds": 60.0, "target": "desk", "effect_key": "e", "review_id": "rev_1",
			}},
			"succeeded": {"queue", final("succeeded", 201, []byte(`{"id":1}`)), object{
				"effect": "applied", "next_action": "stop", "retry_after_seconds": 0.0,
				"response": object{"status": 201.0, "body": object{"id": 1.0}},
			}},
			"failed": {"queue", final("failed", 402, declined), object{
				"effect": "none", "next_action": "ask_human", "retry_after_seconds": 0.0,
				"response": object{"status": 402.0, "body": problemOf(declined)},
			}},
			"canceled": {"queue", final("canceled", 409, withdrawn), object{
				"effect": "none", "next_action": "stop", "retry_after_seconds": 0.0,
				"response": object{"status": 409.0, "body": problemOf(withdrawn)},
			}},
		} {
			name := strings.NewReplacer(" ", "-", ",", "").Replace(state)
			answer := s.post(t, key(name), `{"name":"a","do":"`+c.do+`"}`, "Agent-Run-Id: run-7")
			id := answer.Header.Get("Operation-Id")
			if c.then != nil {
				c.then(id)
			}
			byID, byKey := s.get(t, "/v1/operations/"+id), s.get(t, "/v1/operations", quoted(name))
			if byID.Status != 200 || string(byID.Body) != string(byKey.Body) {
				t.Errorf("%s: by id %s, by key %s", state, byID, byKey)
			}
			var got object
			byID.Decode(t, &got)
			if created, updated := got["created_at"].(string), got["updated_at"].(string); len(created) != len(updated) || updated < created {
				t.Errorf("%s: created %s, updated %s", state, created, updated)
			}
			delete(got, "created_at")
			delete(got, "updated_at")
			for name, value := range (object{
				"id": id, "type": "thing.create", "state": state, "agent_run": "run-7", "attempts": []any{},
				"resource": object{"type": "thing", "id": "thg_" + id, "href": "/v1/things/thg_" + id},
			}) {
				if _, said := c.want[name]; !said {
					c.want[name] = value
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got)\n%s", state, diff)
			}
		}
	})
}

func TestAnOperationThatIsNotThere(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)
		id := s.post(t, key("k"), thing).Header.Get("Operation-Id")
		globex := s.As("demo-globex")

		t.Run("was never sent", func(t *testing.T) {
			p := expect(t, "key", s.get(t, "/v1/operations", key("K")), 404, problem.OperationNotFound)
			if p.Effect != problem.EffectNone || p.Retry != problem.RetrySameKey || p.NextAction != problem.NextRetrySameKey {
				t.Errorf("advice: %+v", p)
			}
			expect(t, "id", s.get(t, "/v1/operations/op_1"), 404, problem.NotFound)
		})

		t.Run("is another account's", func(t *testing.T) {
			mine, theirs := globex.Send(t, "GET", "/v1/operations/op_1", ""), globex.Send(t, "GET", "/v1/operations/"+id, "")
			expect(t, "id", theirs, 404, problem.NotFound)
			a, b := mine.Problem(t), theirs.Problem(t)
			a.Instance, b.Instance = "", ""
			if diff := cmp.Diff(a, b); diff != "" {
				t.Errorf("it shows that it exists elsewhere:\n%s", diff)
			}
			expect(t, "key", globex.Send(t, "GET", "/v1/operations", "", key("k")), 404, problem.OperationNotFound)
			if a := globex.Send(t, "GET", "/v1/operations", ""); string(a.Body) != `{"items":[]}` {
				t.Errorf("list: %s", a)
			}
		})

		t.Run("has an id that nothing can have", func(t *testing.T) {
			for _, id := range []string{"%2e%2e", "a%2Fb", "'", "%25", "%20", "%C3%A9", "%7F"} {
				expect(t, id, s.get(t, "/v1/operations/"+id), 404, problem.NotFound)
			}
			for _, id := range []string{"%00", "op_%00", "%FF", "%C0%80", "op_%ED%A0%80"} { // no text, as the database has it
				expect(t, id, s.get(t, "/v1/operations/"+id), 404, problem.RouteNotFound)
			}
		})

		t.Run("is asked for with what is no key", func(t *testing.T) {
			expect(t, "a space", s.get(t, "/v1/operations", spelled("a b")), 400, problem.IdempotencyKeyInvalid)
			expect(t, "empty", s.get(t, "/v1/operations", spelled("")), 400, problem.IdempotencyKeyInvalid)
			expect(t, "two", s.get(t, "/v1/operations", key("k"), key("k")), 400, problem.IdempotencyKeyInvalid)
		})
	})
}

func TestAListOfOperations(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)
		var made []string
		for i := range 5 {
			made = append(made, s.post(t, key(fmt.Sprint(i)), thing).Header.Get("Operation-Id"))
		}
		slices.Reverse(made)
		s.As("demo-globex").Send(t, "POST", "/v1/things", thing, key("0"))

		type page struct {
			Items      []operation `json:"items"`
			NextCursor *string     `json:"next_cursor"`
		}
		read := func(t *testing.T, query string) (p page) {
			t.Helper()
			a := s.get(t, "/v1/operations"+query)
			a.Decode(t, &p)
			return p
		}
		ids := func(ops []operation) (all []string) {
			for _, op := range ops {
				all = append(all, op.ID)
			}
			return all
		}

		t.Run("is newest first", func(t *testing.T) {
			p := read(t, "")
			if diff := cmp.Diff(made, ids(p.Items)); diff != "" || p.NextCursor != nil {
				t.Errorf("next %v (-want +got)\n%s", p.NextCursor, diff)
			}
		})

		t.Run("is read page by page, undisturbed by what is new", func(t *testing.T) {
			var seen []string
			query := "?limit=2"
			for pages := 1; ; pages++ {
				p := read(t, query)
				seen = append(seen, ids(p.Items)...)
				s.post(t, key(fmt.Sprint("new", pages)), thing)
				if p.NextCursor == nil {
					if pages != 3 {
						t.Errorf("%d pages", pages)
					}
					break
				}
				query = "?limit=2&cursor=" + *p.NextCursor
			}
			if diff := cmp.Diff(made, seen); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})

		t.Run("has no next page where the last is full", func(t *testing.T) {
			n := s.count(t, "operations") - 1 // globex has one
			if p := read(t, fmt.Sprintf("?limit=%d", n)); len(p.Items) != int(n) || p.NextCursor != nil {
				t.Errorf("%d items, next %v", len(p.Items), p.NextCursor)
			}
			if p := read(t, "?limit=200"); len(p.Items) != int(n) {
				t.Errorf("%d items", len(p.Items))
			}
		})

		t.Run("refuses what is no limit, no cursor, no query", func(t *testing.T) {
			cursor := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
			beyondASCII := cursor("/v1/operations op_\x00é")
			for query, pointer := range map[string]string{
				"limit=0": "?limit", "limit=-1": "?limit", "limit=201": "?limit", "limit=1.0": "?limit", "limit=ten": "?limit",
				"limit=99999999999999999999": "?limit", "limit=%00": "?limit", "limit=1&limit=2": "?limit",
				"cursor=!": "?cursor", "cursor=a": "?cursor", "cursor=" + beyondASCII: "?cursor", "cursor=%FF": "?cursor", "cursor=YQ%3D%3D": "?cursor",
				"cursor=" + cursor("/v1/reviews op_1"): "?cursor", "cursor=" + cursor("/v1/operations "): "?cursor", "cursor=" + cursor("op_1"): "?cursor",
				"cursor=": "?cursor", "limit=%zz": "?", "limit=1;cursor=a": "?", "%": "?", "Limit=1": "?Limit", "x": "?x", "%FF=1": "?\ufffd",
			} {
				p := expect(t, query, s.get(t, "/v1/operations?"+query), 422, problem.ValidationFailed)
				if len(p.Errors) != 1 || p.Errors[0].Pointer != pointer {
					t.Errorf("%s: %+v", query, p.Errors)
				}
			}
			p := expect(t, "two", s.get(t, "/v1/operations?limit=0&cursor=!"), 422, problem.ValidationFailed)
			if len(p.Errors) != 2 {
				t.Errorf("two wrong, %d told: %+v", len(p.Errors), p.Errors)
			}
		})
	})
}
