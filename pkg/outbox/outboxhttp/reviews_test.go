package outboxhttp_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/outbox"
	"github.com/einmal/einmal/pkg/problem"
	"github.com/einmal/einmal/pkg/server/servertest"
)

// question is a review as a client reads it.
type question struct {
	ID, Kind, Owner, State string
	OperationID            string                              `json:"operation_id"`
	OpenedAt               time.Time                           `json:"opened_at"`
	DueAt                  time.Time                           `json:"due_at"`
	Escalation             string                              `json:"escalation"`
	EscalatedAt            *time.Time                          `json:"escalated_at"`
	ResolvedBy             string                              `json:"resolved_by"`
	ResolvedAs             string                              `json:"resolved_as"`
	Evidence               []struct{ Source, At, Says string } `json:"evidence"`
}

// says reports whether any evidence does.
func (q question) says(text string) bool {
	for _, e := range q.Evidence {
		if strings.Contains(e.Says, text) {
			return true
		}
	}
	return false
}

func (s effects) review(t *testing.T, id string) (q question) {
	t.Helper()
	s.As("agent").Send(t, "GET", "/v1/reviews/"+id, "").Decode(t, &q)
	return q
}

// list reads a page of reviews as somebody.
func (s effects) list(t *testing.T, token, query string) (ids []string, cursor string) {
	t.Helper()
	var page struct {
		Items      []question
		NextCursor string `json:"next_cursor"`
	}
	s.As(token).Send(t, "GET", "/v1/reviews"+query, "").Decode(t, &page)
	ids = []string{}
	for _, q := range page.Items {
		ids = append(ids, q.ID)
	}
	return ids, page.NextCursor
}

// resolve resolves a review as an operator.
func (s effects) resolve(t *testing.T, id, k, body string) servertest.Answer {
	t.Helper()
	return s.As("operator").Send(t, "POST", "/v1/reviews/"+id+"/resolution", body, key(k))
}

// withPerson brings operations to a person, oldest first.
func (s effects) withPerson(t *testing.T, keys ...string) (all []operation) {
	t.Helper()
	for _, k := range keys {
		id := s.accept(t, k)
		all = append(all, s.becomes(t, id, "is with a person", func(op operation) bool { return op.ReviewID != "" }))
	}
	return all
}

func TestReviews(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind, unable)
		s.desk.says(shows(ambiguous), nil, nil)
		s.work(t)
		all := s.withPerson(t, "one", "two", "three")

		t.Run("say what is asked, whom, and why", func(t *testing.T) {
			op := all[0]
			if op.State != "unknown" || op.Effect != "unknown" || op.NextAction != "ask_human" {
				t.Errorf("%+v", op)
			}
			q := s.review(t, op.ReviewID)
			if q.ID != op.ReviewID || q.Kind != "unknown" || q.State != "open" || q.Owner != "operator" || q.OperationID != op.ID || q.ResolvedBy != "" || !q.DueAt.After(q.OpenedAt) ||
				len(q.Evidence) != 2 || q.Evidence[0].Source != "desk" || q.Evidence[0].Says != "send: ambiguous: no answer" || q.Evidence[1].Says != "ambiguous after 1 send: no answer" {
				t.Errorf("%+v", q)
			}
		})

		t.Run("are read by every role of their account, and by nobody else", func(t *testing.T) {
			path := "/v1/reviews/" + all[0].ReviewID
			for _, role := range []string{"agent", "approver", "operator", "auditor"} {
				if a := s.As(role).Send(t, "GET", path, ""); a.Status != 200 {
					t.Errorf("%s: %s", role, a)
				}
				if ids, _ := s.list(t, role, ""); len(ids) != 3 {
					t.Errorf("%s: %v", role, ids)
				}
			}
			expect(t, "stranger", s.As("stranger").Send(t, "GET", path, ""), 404, problem.NotFound)
			expect(t, "nobody", s.As("").Send(t, "GET", path, ""), 401, problem.Unauthenticated)
			if a := s.As("stranger").Send(t, "GET", "/v1/reviews", ""); string(a.Body) != `{"items":[]}` {
				t.Errorf("%s", a)
			}
			for _, unknown := range []string{"rev_1", "x", all[0].ID} {
				expect(t, unknown, s.As("agent").Send(t, "GET", "/v1/reviews/"+unknown, ""), 404, problem.NotFound)
			}
		})

		t.Run("are listed newest first, page by page, by state", func(t *testing.T) {
			want := []string{all[2].ReviewID, all[1].ReviewID, all[0].ReviewID}
			for _, query := range []string{"", "?state=open"} {
				if ids, cursor := s.list(t, "agent", query); cmp.Diff(want, ids) != "" || cursor != "" {
					t.Errorf("%q: %v %q", query, ids, cursor)
				}
			}
			first, cursor := s.list(t, "agent", "?limit=2")
			second, end := s.list(t, "agent", "?limit=2&cursor="+cursor)
			if diff := cmp.Diff(want, append(first, second...)); diff != "" || cursor == "" || end != "" {
				t.Errorf("%s, cursors %q %q", diff, cursor, end)
			}
			for _, query := range []string{"?state=resolved", "?kind=deadline", "?overdue=true"} {
				if ids, _ := s.list(t, "agent", query); len(ids) != 0 {
					t.Errorf("%s: %v", query, ids)
				}
			}
			for query, pointer := range map[string]string{
				"?state=closed": "?state", "?state=": "?state", "?state=open&state=open": "?state", "?owner=x": "?owner", "?kind=late": "?kind", "?overdue=false": "?overdue", "?limit=0": "?limit", "?cursor=x": "?cursor",
			} {
				p := expect(t, query, s.As("agent").Send(t, "GET", "/v1/reviews"+query, ""), 422, problem.ValidationFailed)
				if len(p.Errors) != 1 || p.Errors[0].Pointer != pointer {
					t.Errorf("%s: %+v", query, p.Errors)
				}
			}
		})
	})
}

func TestResolution(t *testing.T) {
	const found = `{"state":"succeeded","evidence":"seen at the desk","reference":"D-7"}`
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind, unable)
		s.desk.says(shows(ambiguous), nil, nil)
		s.work(t)
		all := s.withPerson(t, "one", "two", "three")
		op := all[0]
		path := "/v1/reviews/" + op.ReviewID + "/resolution"

		t.Run("that is refused uses no key up", func(t *testing.T) {
			before := s.count(t, "operations")
			for _, role := range []string{"agent", "approver", "auditor"} {
				expect(t, role, s.As(role).Send(t, "POST", path, found, key("r")), 403, problem.Forbidden)
			}
			expect(t, "stranger", s.As("stranger").Send(t, "POST", path, found, key("r")), 404, problem.NotFound)
			for _, unknown := range []string{"rev_1", "x", op.ID} {
				expect(t, unknown, s.resolve(t, unknown, "r", found), 404, problem.NotFound)
			}
			expect(t, "no key", s.As("operator").Send(t, "POST", path, found), 400, problem.IdempotencyKeyMissing)
			for _, body := range []string{``, `[]`, `{`, found + found} {
				expect(t, body, s.As("operator").Send(t, "POST", path, body, key("r"), "Content-Type: application/json"), 400, problem.MalformedBody)
			}
			for body, pointer := range map[string]string{
				`{"state":"succeeded"}`:                                                    "/evidence",
				`{"state":"succeeded","evidence":""}`:                                      "/evidence",
				`{"evidence":"e"}`:                                                         "/state", // this question is what it has become
				`{"state":"unknown","evidence":"e"}`:                                       "/state",
				`{"state":"queued","evidence":"e"}`:                                        "/state",
				`{"state":"","evidence":"e"}`:                                              "/state",
				`{"state":null,"evidence":"e"}`:                                            "/state",
				`{"state":"failed","evidence":"e","by":"me"}`:                              "/by",
				`{"state":"failed","evidence":7}`:                                          "/evidence",
				fmt.Sprintf(`{"state":"failed","evidence":%q}`, strings.Repeat("ä", 2001)): "/evidence",
				fmt.Sprintf(`{"state":"failed","evidence":"e","reference":%q}`, strings.Repeat("ä", 256)): "/reference",
			} {
				p := expect(t, body, s.resolve(t, op.ReviewID, "r", body), 422, problem.ValidationFailed)
				if len(p.Errors) != 1 || p.Errors[0].Pointer != pointer {
					t.Errorf("%s: %+v", body, p.Errors)
				}
			}
			s.moveTo(t, "another desk")
			expect(t, "a target that is not served", s.resolve(t, op.ReviewID, "r", found), 503, problem.TargetNotServed)
			s.moveTo(t, "desk")
			if after := s.count(t, "operations"); after != before {
				t.Errorf("%d operations, and then %d", before, after)
			}
			if got := s.operation(t, op.ID); got.State != "unknown" || s.review(t, op.ReviewID).State != "open" || len(s.events(t, op.ID, "resolved")) != 0 {
				t.Errorf("%+v", got)
			}
		})

		t.Run("ends the operation, wakes who waits, and stays", func(t *testing.T) {
			settled := s.box.Settled(op.ID)
			a := s.resolve(t, op.ReviewID, "r", found) // with the key of all the above
			var q question
			a.Decode(t, &q)
			if a.Status != 200 || a.Outcome() != "executed" || a.Header.Get("Location") != "/v1/reviews/"+op.ReviewID || q.State != "resolved" || q.ResolvedBy != "operator" ||
				q.ResolvedAs != "succeeded" || len(q.Evidence) != 3 || q.Evidence[2].Source != "operator" || q.Evidence[2].Says != "seen at the desk" {
				t.Errorf("%s %v", a, a.Header)
			}
			woken(t, settled)
			if got := s.operation(t, op.ID); got.State != "succeeded" || got.Effect != "applied" || got.Reference != "D-7" {
				t.Errorf("%+v", got)
			}
			if diff := cmp.Diff(q, s.review(t, op.ReviewID)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff([]string{"resolved unknown>succeeded by operator"}, s.events(t, op.ID, "resolved")); diff != "" {
				t.Error(diff)
			}
			replays(t, a, func() servertest.Answer { return s.resolve(t, op.ReviewID, "r", found) })
			no := s.resolve(t, op.ReviewID, "again", found)
			expect(t, "again", no, 409, problem.ReviewResolved)
			replays(t, no, func() servertest.Answer { return s.resolve(t, op.ReviewID, "again", found) })
			if ids, _ := s.list(t, "agent", "?state=resolved"); cmp.Diff([]string{op.ReviewID}, ids) != "" {
				t.Errorf("%v", ids)
			}
		})

		t.Run("can find that nothing has happened", func(t *testing.T) {
			for i, state := range []string{"failed", "canceled"} {
				about := all[i+1]
				if a := s.resolve(t, about.ReviewID, state, fmt.Sprintf(`{"state":%q,"evidence":"the desk has none"}`, state)); a.Status != 200 {
					t.Errorf("%s", a)
				}
				if got := s.operation(t, about.ID); got.State != state || got.Effect != "none" {
					t.Errorf("%+v", got)
				}
			}
			if n := s.desk.called("send"); n != 3 {
				t.Errorf("%d sends of 3 operations", n)
			}
		})
	})
}

// A question may be open while the machine goes on; then a person's word comes too early, or too late.
func TestResolutionBesideTheMachine(t *testing.T) {
	const none = `{"state":"failed","evidence":"the desk has none"}`
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		t.Run("is for later while the operation is not unknown", func(t *testing.T) {
			s := start(t, kind, keyed, func(target *outbox.Target) { target.AskEvery = time.Millisecond })
			release := make(chan struct{})
			letGo := sync.OnceFunc(func() { close(release) })
			s.desk.says(shows(ambiguous), shows(ambiguous), nil)
			stop := s.work(t)
			defer letGo()
			op := s.withPerson(t, "k")[0] // no answer for long
			s.desk.says(func() outbox.Evidence { <-release; return happened }, shows(outbox.Evidence{Finding: outbox.NotFound}), nil)
			s.becomes(t, op.ID, "is being sent again", func(op operation) bool { return op.State == "running" && len(op.Attempts) == 2 })
			busy := s.resolve(t, op.ReviewID, "r", none)
			p := expect(t, "busy", busy, 409, problem.OperationRunning)
			if t.Failed() {
				return
			}
			if busy.Header.Get("Retry-After") != "1" || p.Retry != problem.RetrySameKey || p.Title != "Operation is running" {
				t.Errorf("%s %v", busy, busy.Header)
			}
			if q := s.review(t, op.ReviewID); q.State != "open" || q.ResolvedBy != "" || len(s.events(t, op.ID, "resolved")) != 0 {
				t.Errorf("%+v", q)
			}
			letGo()
			s.becomes(t, op.ID, "has happened", in("succeeded"))
			stop()
			expect(t, "too late", s.resolve(t, op.ReviewID, "r", none), 409, problem.ReviewResolved) // with the same key
			if got := s.operation(t, op.ID); got.State != "succeeded" {
				t.Errorf("%+v", got)
			}
		})

		t.Run("of a contradiction changes nothing about the operation", func(t *testing.T) {
			s := start(t, kind, lookedUp)
			s.desk.says(shows(ambiguous), shows(outbox.Evidence{Finding: outbox.Confirmed, Reference: "D-1", More: []string{"D-2"}}), nil)
			s.work(t)
			id := s.accept(t, "k")
			s.becomes(t, id, "is unknown", in("unknown"))
			s.about(t, "reconcile", id, "r")
			s.becomes(t, id, "is found", in("succeeded"))
			ids, _ := s.list(t, "agent", "?state=open")
			if len(ids) != 1 {
				t.Fatalf("open reviews: %v", ids)
			}
			q := s.review(t, ids[0])
			if q.Kind != "contradiction" || q.OperationID != id || !q.says("D-1") || !q.says("D-2") {
				t.Errorf("%+v", q)
			}
			no := s.resolve(t, q.ID, "state", none)
			expect(t, "with a state", no, 409, problem.OperationFinal)
			replays(t, no, func() servertest.Answer { return s.resolve(t, q.ID, "state", none) })
			a := s.resolve(t, q.ID, "e", `{"evidence":"D-2 was closed by hand"}`)
			replays(t, a, func() servertest.Answer { return s.resolve(t, q.ID, "e", `{"evidence":"D-2 was closed by hand"}`) })
			if op := s.operation(t, id); a.Status != 200 || op.State != "succeeded" || op.Reference != "D-1" {
				t.Errorf("%s %+v", a, op)
			}
			if diff := cmp.Diff([]string{"resolved > by operator"}, s.events(t, id, "resolved")); diff != "" {
				t.Error(diff)
			}
		})
	})
}
