package tickets_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/problem"
	"github.com/einmal/einmal/pkg/server/servertest"
)

// setStatus sends a status as acme's agent.
func (r running) setStatus(t *testing.T, id, k, body string) servertest.Answer {
	t.Helper()
	return r.agent().Send(t, "PUT", "/v1/tickets/"+id+"/status", body, key("%s", k))
}

// newTicket makes a ticket that is brought to a status, and returns it.
func (r running) newTicket(t *testing.T, k, status string) ticket {
	t.Helper()
	id := ticketOf(t, create(t, r.agent(), key("%s", k), `{"project":"ops","title":"t"}`)).ID
	if status != "open" {
		if a := r.setStatus(t, id, k+"-"+status, `{"status":"`+status+`"}`); a.Status != 200 {
			t.Errorf("%s: %s", status, a)
		}
	}
	return r.now(t, id)
}

// insist sends until the answer is final, as a client does on a machine that is too slow for the wait budget.
func insist(send func() servertest.Answer) servertest.Answer {
	for {
		if a := send(); a.Status != 503 && a.Outcome() != "in_progress" {
			return a
		}
	}
}

// changed is whether the command has changed the ticket that it was answered with.
func changed(t *testing.T, a servertest.Answer) bool {
	t.Helper()
	var told struct {
		Changed *bool `json:"changed"`
	}
	if a.Decode(t, &told); told.Changed == nil {
		t.Errorf("it does not say whether it has changed anything: %s", a)
		return false
	}
	return *told.Changed
}

func TestAStatus(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)

		t.Run("is set, whatever it was, and the version says that it changed", func(t *testing.T) {
			statuses := []string{"open", "in_progress", "resolved", "closed"}
			for _, from := range statuses[:3] {
				for _, to := range statuses {
					was := s.newTicket(t, from+to, from)
					a := s.setStatus(t, was.ID, from+to+"-set", `{"status":"`+to+`"}`)
					got, want := ticketOf(t, a), was
					if want.Status = to; from != to {
						want.Version++
						want.UpdatedAt = got.UpdatedAt
					}
					if want.ClosedAt = ""; to == "closed" {
						want.ClosedAt = got.UpdatedAt
					}
					if diff := cmp.Diff(want, got); a.Status != 200 || diff != "" || changed(t, a) != (from != to) || a.Header.Get("Location") != "/v1/tickets/"+was.ID {
						t.Errorf("%s to %s: %s (-want +got)\n%s", from, to, a, diff)
					}
					if diff := cmp.Diff(want, s.now(t, was.ID)); diff != "" {
						t.Errorf("%s to %s, read back (-want +got)\n%s", from, to, diff)
					}
				}
			}
		})

		t.Run("is compared with what was seen, if that is said", func(t *testing.T) {
			id := s.newTicket(t, "seen", "in_progress").ID // version 2
			for i, version := range []int{1, 3, 1 << 40} {
				a := s.setStatus(t, id, fmt.Sprint("stale", i), fmt.Sprintf(`{"status":"resolved","expected_version":%d}`, version))
				if p := expect(t, version, a, 409, problem.VersionMismatch); p.Retry != problem.RetryNewKey || p.Effect != problem.EffectNone || a.Outcome() != "refused" {
					t.Errorf("%s", a)
				}
				replays(t, a, func() servertest.Answer {
					return s.setStatus(t, id, fmt.Sprint("stale", i), fmt.Sprintf(`{"status":"resolved","expected_version":%d}`, version))
				})
			}
			expect(t, "the status that it has", s.setStatus(t, id, "stale-same", `{"status":"in_progress","expected_version":1}`), 409, problem.VersionMismatch)
			if a := s.setStatus(t, id, "fresh", `{"status":"resolved","expected_version":2}`); a.Status != 200 || ticketOf(t, a).Version != 3 || !changed(t, a) {
				t.Errorf("%s", a)
			}
			// The version has moved on; the refusals stand, and the success is not undone by its own retry.
			if a := s.setStatus(t, id, "fresh", `{"status":"resolved","expected_version":2}`); a.Outcome() != "replayed" || !changed(t, a) {
				t.Errorf("%s", a)
			}
		})

		t.Run("that is closed is left only to open, by who says what they have seen", func(t *testing.T) {
			id := s.newTicket(t, "closed", "closed").ID // version 2
			was := s.now(t, id)
			for i, body := range []string{
				`{"status":"open"}`, `{"status":"in_progress"}`, `{"status":"resolved"}`,
				`{"status":"in_progress","expected_version":2}`, `{"status":"resolved","expected_version":2}`, `{"status":"resolved","expected_version":1}`,
			} {
				a := s.setStatus(t, id, fmt.Sprint("leave", i), body)
				expect(t, body, a, 409, problem.TicketClosed)
				replays(t, a, func() servertest.Answer { return s.setStatus(t, id, fmt.Sprint("leave", i), body) })
			}
			expect(t, "another version", s.setStatus(t, id, "leave-stale", `{"status":"open","expected_version":1}`), 409, problem.VersionMismatch)
			if diff := cmp.Diff(was, s.now(t, id)); diff != "" {
				t.Errorf("a refusal has changed it (-want +got)\n%s", diff)
			}
			for i, body := range []string{`{"status":"closed"}`, `{"status":"closed","expected_version":2}`} {
				if a := s.setStatus(t, id, fmt.Sprint("close", i), body); a.Status != 200 || changed(t, a) || ticketOf(t, a).ClosedAt != was.ClosedAt {
					t.Errorf("closed once more: %s", a)
				}
			}
			if a := s.setStatus(t, id, "reopen", `{"status":"open","expected_version":2}`); a.Status != 200 || ticketOf(t, a).ClosedAt != "" || ticketOf(t, a).Version != 3 {
				t.Errorf("%s", a)
			}
			if n := s.now(t, id).ClosedAt; n != "" {
				t.Errorf("open, and closed at %s", n)
			}
		})

		t.Run("is an operation of its own", func(t *testing.T) {
			id := s.newTicket(t, "own", "open").ID
			a := s.setStatus(t, id, "own-set", `{"status":"resolved"}`)
			var op struct {
				operation
				Resource struct{ ID string }
			}
			s.agent().Send(t, "GET", "/v1/operations", "", key("own-set")).Decode(t, &op)
			if op.Type != "ticket.set_status" || op.State != "succeeded" || op.Effect != "applied" || op.ID != a.Header.Get("Operation-Id") || op.Resource.ID != id {
				t.Errorf("%+v", op)
			}
			replays(t, a, func() servertest.Answer { return s.setStatus(t, id, "own-set", `{"status":"resolved"}`) })
			expect(t, "another status under its key", s.setStatus(t, id, "own-set", `{"status":"closed"}`), 422, problem.IdempotencyKeyReused)
			other := s.newTicket(t, "own2", "open").ID
			expect(t, "another ticket under its key", s.setStatus(t, other, "own-set", `{"status":"resolved"}`), 422, problem.IdempotencyKeyReused)
		})

		t.Run("of an old retry does not undo what came after", func(t *testing.T) {
			id := s.newTicket(t, "old", "open").ID
			first := s.setStatus(t, id, "old-progress", `{"status":"in_progress"}`)
			s.setStatus(t, id, "old-resolve", `{"status":"resolved"}`)
			replays(t, first, func() servertest.Answer { return s.setStatus(t, id, "old-progress", `{"status":"in_progress"}`) })
			if got := s.now(t, id); got.Status != "resolved" || got.Version != 3 {
				t.Errorf("%+v", got)
			}
		})

		t.Run("of a ticket that is not there uses no key up", func(t *testing.T) {
			theirs := ticketOf(t, create(t, s.globex(), key("theirs"), `{"project":"ops","title":"t"}`)).ID
			for _, id := range []string{"tkt_1", theirs} {
				p := expect(t, id, s.setStatus(t, id, "absent", `{"status":"resolved","expected_version":9}`), 404, problem.NotFound)
				if p.Retry != problem.RetrySameKey || p.Effect != problem.EffectNone {
					t.Errorf("%+v", p)
				}
			}
			id := s.newTicket(t, "there", "open").ID
			if a := s.setStatus(t, id, "absent", `{"status":"resolved"}`); a.Outcome() != "executed" {
				t.Errorf("%s", a)
			}
			a := s.globex().Send(t, "GET", "/v1/tickets/"+theirs, "")
			if got := ticketOf(t, a); got.Status != "open" || got.Version != 1 {
				t.Errorf("another account has changed it: %+v", got)
			}
		})

		s.healthy(t)
	})
}

// Of those who decide by the same version one gets through; those who decide by none all do, one after the other.
func TestStatusesAtOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)
		const callers = 12
		statuses := []string{"in_progress", "resolved", "open"}
		all := func(id, k, rest string) (answers [callers]servertest.Answer) {
			var at sync.WaitGroup
			for i := range callers {
				at.Go(func() {
					answers[i] = insist(func() servertest.Answer {
						return s.setStatus(t, id, fmt.Sprint(k, i), `{"status":"`+statuses[i%3]+`"`+rest+`}`)
					})
				})
			}
			at.Wait()
			return answers
		}

		t.Run("of one version", func(t *testing.T) {
			id := s.newTicket(t, "one", "resolved").ID
			s.setStatus(t, id, "one-progress", `{"status":"closed"}`) // version 3: to open, or not at all
			opened := 0
			for i, a := range all(id, "v", `,"expected_version":3`) {
				switch code := problem.Code(""); {
				case a.Status == 200 && changed(t, a):
					opened++
				case statuses[i%3] == "open":
					expect(t, i, a, 409, problem.VersionMismatch)
				default: // before it was opened, or after
					if code = a.Problem(t).Code; code != problem.TicketClosed && code != problem.VersionMismatch {
						t.Errorf("%s", a)
					}
				}
			}
			if got := s.now(t, id); opened != 1 || got.Status != "open" || got.Version != 4 {
				t.Errorf("%d have changed it, to %+v", opened, got)
			}
		})

		t.Run("of no version", func(t *testing.T) {
			id := s.newTicket(t, "none", "open").ID
			changes, versions := 0, map[int]bool{}
			for _, a := range all(id, "n", "") {
				if a.Status != 200 {
					t.Errorf("%s", a)
				}
				if changed(t, a) {
					changes++
					versions[ticketOf(t, a).Version] = true
				}
			}
			if got := s.now(t, id); got.Version != 1+changes || len(versions) != changes {
				t.Errorf("%d changes to %d versions, and it is at %d", changes, len(versions), got.Version)
			}
		})
		s.healthy(t)
	})
}

func TestWhatIsNoStatus(t *testing.T) {
	s := start(t, database.SQLite) // none of this gets as far as a database
	id := s.newTicket(t, "k", "open").ID
	for body, want := range map[string][]string{
		`{}`:                                        {"/status"},
		`{"status":"Open"}`:                         {"/status"},
		`{"status":"reopened"}`:                     {"/status"},
		`{"status":null}`:                           {"/status"},
		`{"status":["open"]}`:                       {"/status"},
		`{"status":"open","expected_version":0}`:    {"/expected_version"},
		`{"status":"open","expected_version":-1}`:   {"/expected_version"},
		`{"status":"open","expected_version":1.0}`:  {"/expected_version"},
		`{"status":"open","expected_version":"1"}`:  {"/expected_version"},
		`{"status":"open","expected_version":null}`: {"/expected_version"},
		`{"status":"open","version":1}`:             {"/version"},
		`{"Status":"open","note":"x","expected_version":9007199254740992}`: {"/expected_version", "/Status", "/note"},
	} {
		p := expect(t, body, s.setStatus(t, id, "no", body), 422, problem.ValidationFailed)
		var got []string
		for _, v := range p.Errors {
			got = append(got, v.Pointer)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", body, diff)
		}
	}
	for _, step := range []struct {
		who, body string
		headers   []string
		status    int
		code      problem.Code
	}{
		{"demo-approver", "x", nil, 403, problem.Forbidden},
		{"demo-agent", "x", nil, 400, problem.IdempotencyKeyMissing},
		{"demo-agent", "x", []string{key("no"), "Content-Type: text/plain"}, 415, problem.UnsupportedMediaType},
		{"demo-agent", `{"status":"` + strings.Repeat("a", 1<<20) + `"}`, []string{key("no")}, 413, problem.BodyTooLarge},
		{"demo-agent", `{"status":"open","status":"closed"}`, []string{key("no")}, 400, problem.MalformedBody},
	} {
		expect(t, step.code, s.As(step.who).Send(t, "PUT", "/v1/tickets/"+id+"/status", step.body, step.headers...), step.status, step.code)
	}
	expect(t, "POST", s.agent().Send(t, "POST", "/v1/tickets/"+id+"/status", `{"status":"open"}`, key("no")), 405, problem.MethodNotAllowed)
	if a := s.setStatus(t, id, "no", `{"status":"closed"}`); a.Outcome() != "executed" {
		t.Errorf("the key was used up: %s", a)
	}
}

// A command that says nothing about a version is not the same as one that does.
func TestTheFingerprintOfAStatus(t *testing.T) {
	s := start(t, database.SQLite)
	id := s.newTicket(t, "k", "open").ID
	a := s.agent().Send(t, "POST", "/v1/fingerprints", `{"method":"PUT","path":"/v1/tickets/`+id+`/status","body":{"status":"closed"}}`)
	var told struct{ Canonical string }
	a.Decode(t, &told)
	var canonical struct{ Command map[string]any }
	if err := json.Unmarshal([]byte(told.Canonical), &canonical); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"status": "closed", "expected_version": nil}, canonical.Command); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	s.setStatus(t, id, "set", `{"status":"closed"}`)
	expect(t, "with a version", s.setStatus(t, id, "set", `{"status":"closed","expected_version":1}`), 422, problem.IdempotencyKeyReused)
}
