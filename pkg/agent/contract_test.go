package agent_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/einmal/einmal/pkg/agent"
	"github.com/einmal/einmal/pkg/problem"
)

var actions = []agent.Action{agent.Done, agent.Stop, agent.RetrySameKey, agent.LookUp, agent.Poll, agent.HandOver}

// Every code that a service can answer has a row, every row says what to do in every situation, and what it says agrees with the advice that the
// catalogue gives to everybody.
func TestTheContractIsComplete(t *testing.T) {
	for _, entry := range problem.All() {
		row, ok := agent.Contract[agent.Code(entry.Code)]
		if !ok {
			t.Errorf("%s has no row", entry.Code)
			continue
		}
		first := row[agent.Sent]
		switch {
		case entry.Retry == problem.RetryNever && first == agent.RetrySameKey:
			t.Errorf("%s must never be retried, and is", entry.Code)
		case entry.NextAction == problem.NextRetrySameKey && entry.Effect == problem.EffectNone && entry.Code != problem.OperationNotFound && first != agent.RetrySameKey:
			t.Errorf("%s is to be retried with its key: %s", entry.Code, first)
		case entry.Effect == problem.EffectUnknown && first == agent.Stop:
			t.Errorf("%s leaves the effect unknown, and is taken for a refusal", entry.Code)
		case entry.NextAction == problem.NextFixRequest && first == agent.RetrySameKey:
			t.Errorf("%s does not go away by itself, and is retried", entry.Code)
		}
		// Without an answer to an earlier attempt nothing is refused, except by the answer of the key itself.
		if row[agent.InDoubt] == agent.Stop && entry.Code != problem.IdempotencyKeyReused {
			t.Errorf("%s, in doubt: %s", entry.Code, row[agent.InDoubt])
		}
		// A question never ends in a request that may have the effect, except where there is no such operation.
		if row[agent.Asked] == agent.RetrySameKey && entry.Code != problem.OperationNotFound {
			t.Errorf("%s, asked about: %s", entry.Code, row[agent.Asked])
		}
	}
	codes := map[agent.Reading]bool{}
	for _, entry := range problem.All() {
		codes[agent.Code(entry.Code)] = true
	}
	for reading, row := range agent.Contract {
		for _, situation := range agent.Situations {
			if !slices.Contains(actions, row[situation]) {
				t.Errorf("%s, situation %d: %q is no action", reading, situation, row[situation])
			}
		}
		if row[agent.Ended] == agent.RetrySameKey || row[agent.Ended] == agent.LookUp || row[agent.Ended] == agent.Poll {
			t.Errorf("%s has ended, and then: %s", reading, row[agent.Ended])
		}
		isState := strings.HasPrefix(string(reading), string(agent.OperationIs("")))
		if text := (agent.Seen{Reading: reading}).String(); !codes[reading] && !isState && text == string(reading) {
			t.Errorf("%s has no words for a person", reading)
		}
		if _, twice := problem.Lookup(problem.Code(reading)); twice != codes[reading] {
			t.Errorf("%s is no code, and is one", reading)
		}
	}
	if len(agent.Situations) != len(agent.Row{}) {
		t.Errorf("%d situations and %d columns", len(agent.Situations), len(agent.Row{}))
	}
}

// Whatever a code is answered to, the agent ends, with one key, and asks no more often than it was given.
func TestEveryCodeEndsTheAgent(t *testing.T) {
	for _, entry := range problem.All() {
		t.Run(string(entry.Code), func(t *testing.T) {
			t.Parallel()
			for name, write := range map[string]answer{"for now": refuse(entry.Code), "for good": final(entry.Code), "after a lost answer": refuse(entry.Code)} {
				x := newTarget(t, write)
				if name == "after a lost answer" {
					x.writes = []answer{lost, write}
				}
				w := newWork(t, x)
				r := w.one(within(create, `{"attempts":3,"deadline_seconds":600}`))
				keys, writes := x.arrived()
				if writes > 3 || len(keys) != 1 || r.Outcome == "" || r.Outcome == agent.Executed || r.Outcome == agent.Replayed {
					t.Errorf("%s: %s after %d attempts with %d keys", name, r.Outcome, writes, len(keys))
				}
				if name == "after a lost answer" && r.Outcome == agent.Refused && entry.Effect == problem.EffectUnknown {
					t.Errorf("%s: it is said not to have happened", name)
				}
			}
		})
	}
}

func TestUnderstanding(t *testing.T) {
	const page = "<html>Service is having a coffee</html>"
	executed := []string{"Idempotency-Outcome", "executed", "Operation-Id", "op_1"}
	for _, test := range []struct {
		name    string
		answer  answer
		reading agent.Reading
	}{
		{"no body", says(201, "application/json", "", executed...), agent.Unreadable},
		{"a body that is no JSON", says(201, "application/json", `{"id":`, executed...), agent.Unreadable},
		{"a body that is cut short", func(w http.ResponseWriter, r *http.Request) {
			says(201, "application/json", `{"id":"tkt_1"}`, append(executed, "Content-Length", "99")...)(w, r)
		}, agent.Unreadable},
		{"a success that nobody owns up to", says(200, "application/json", `{"id":"tkt_1"}`), agent.Unreadable},
		{"a page of a proxy that says 200", says(200, "text/html", page), agent.Unreadable},
		{"a page of a proxy that says 404", says(404, "text/html", page), agent.Unreadable},
		{"a page of a proxy that says 502", says(502, "text/html", page), agent.Unreadable},
		{"a page to log in at", says(302, "text/html", page, "Location", "/login"), agent.Unreadable},
		{"a redirect that keeps the method", says(307, "text/html", page, "Location", "/v1/elsewhere"), agent.Unreadable},
		{"a problem that says 200", says(200, problem.ContentType, string(problem.New(problem.TicketClosed, "").JSON()), executed...), agent.Unreadable},
		{"the same as plain JSON", says(200, "application/json", string(problem.New(problem.TicketClosed, "").JSON()), executed...), agent.Unreadable},
		{"a problem under another status", says(500, problem.ContentType, string(problem.New(problem.TicketClosed, "").JSON())), agent.Unreadable},
		{"a code of another status", says(422, problem.ContentType, `{"code":"payment-declined","status":422}`), agent.Unreadable},
		{"JSON that is no problem", says(409, "application/json", `{"error":"in progress"}`), agent.Unreadable},
		{"a code that is not known", says(409, problem.ContentType, `{"code":"moon-too-bright","status":409,"effect":"none"}`), agent.UnknownCode},
		{"an operation without an id", says(202, "application/json", `{"state":"queued"}`, "Idempotency-Outcome", "accepted"), agent.Unreadable},
	} {
		t.Run(test.name+" is not taken for an outcome, but looked up and sent again", func(t *testing.T) {
			x := newTarget(t, test.answer, done("replayed"))
			w := newWork(t, x)
			r := w.one(create)
			w.ends(r, agent.Replayed, 2)
			if got := r.Requests[0].Seen.Reading; got != test.reading || x.questioned() != 1 {
				t.Errorf("read as %q and asked %d times, want %q and once", got, x.questioned(), test.reading)
			}
		})
	}
	for _, test := range []struct {
		name   string
		answer answer
	}{
		{"a page", says(200, "text/html", page)},
		{"a state that is not known", operation("dreaming", "")},
		{"nothing", says(200, "application/json", "")},
		{"an error of a proxy", says(404, "text/html", page)},
		{"a rate limit", refuse(problem.RateLimited)},
	} {
		t.Run(test.name+" is no answer to a question, which is asked again", func(t *testing.T) {
			x := newTarget(t, lost).shows(test.answer, operation("succeeded", ""))
			w := newWork(t, x)
			w.ends(w.one(create), agent.Executed, 1)
		})
	}
}

// Only the target can compare commands, so what somebody else has begun under the key is not taken for ours.
func TestTheOperationOfSomebodyElse(t *testing.T) {
	others := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"id":"op_9","state":"succeeded","response":{"status":201,"body":{"id":"tkt_9"}}}`))
	}
	w := newWork(t, newTarget(t, lost, refuse(problem.IdempotencyKeyReused)).shows(others))
	w.ends(w.one(create), agent.Conflict, 2)

	w = newWork(t, newTarget(t, lost, done("replayed")).shows(others))
	w.ends(w.one(create), agent.Replayed, 2)
}

// A refusal says nothing of an attempt before it that got no answer.
func TestARefusalInDoubtIsConfirmed(t *testing.T) {
	t.Run("by an operation that there is", func(t *testing.T) {
		x := newTarget(t, lost, refuse(problem.ValidationFailed)).shows(refuse(problem.OperationNotFound), operation("succeeded", ""))
		w := newWork(t, x)
		w.ends(w.one(create), agent.Executed, 2)
	})
	t.Run("by one that there is not", func(t *testing.T) {
		w := newWork(t, newTarget(t, lost, refuse(problem.ValidationFailed)))
		w.ends(w.one(create), agent.Refused, 2)
	})
	t.Run("by nobody, where nobody can be asked", func(t *testing.T) {
		w := newWork(t, newTarget(t, lost, says(422, "application/json", `{}`)))
		w.ability = agent.Keys
		w.ends(w.one(create), agent.Unknown, 2)
	})
}

func TestDecisionsAreByCodeNotByText(t *testing.T) {
	x := newTarget(t, refuse(problem.OperationInProgress), refuse(problem.OperationInProgress), done("replayed"))
	w := newWork(t, x)
	w.ends(w.one(create), agent.Replayed, 3)

	w = newWork(t, newTarget(t, refuse(problem.ValidationFailed))) // whose text says: in progress, try again
	w.ends(w.one(create), agent.Refused, 1)
}

func TestATargetThatCanDoLess(t *testing.T) {
	t.Run("with keys alone it is sent again under its key instead of asked", func(t *testing.T) {
		x := newTarget(t, lost, says(503, "text/html", "busy"), says(201, "application/json", `{"id":7}`))
		w := newWork(t, x)
		w.ability = agent.Keys
		r := w.one(create)
		w.ends(r, agent.Executed, 3)
		if x.questioned() != 0 || string(r.Response.Body) != `{"id":7}` {
			t.Errorf("%d questions, %+v", x.questioned(), r.Response)
		}
	})
	for name, write := range map[string]answer{
		"no answer": lost, "an error": says(500, "text/plain", "oops"), "a busy target": says(503, "text/plain", "", "Retry-After", "1"), "a page": says(302, "text/html", ""),
	} {
		t.Run("with nothing, "+name+" is handed over, and never sent again", func(t *testing.T) {
			x := newTarget(t, write, says(201, "application/json", `{}`))
			w := newWork(t, x)
			w.ability = agent.None
			for range 3 {
				r := w.one(create)
				_, writes := x.arrived()
				if writes != 1 || x.questioned() != 0 || r.Outcome != agent.Unknown && r.Outcome != agent.NeedsPerson {
					t.Errorf("%s after %d requests and %d questions", r.Outcome, writes, x.questioned())
				}
			}
		})
	}
	t.Run("with nothing, an answer is an answer", func(t *testing.T) {
		for status, outcome := range map[int]agent.Outcome{200: agent.Executed, 204: agent.Executed, 400: agent.Refused, 404: agent.Refused, 422: agent.Refused} {
			w := newWork(t, newTarget(t, says(status, "text/plain", "")))
			w.ability = agent.None
			w.ends(w.one(create), outcome, 1)
		}
	})
	for _, ability := range []agent.Ability{agent.Keys, agent.None} {
		for _, status := range []int{401, 403, 407, 409, 429, 503} {
			t.Run(fmt.Sprintf("with %s, a bare %d may be of somebody on the way, so it may have happened", ability, status), func(t *testing.T) {
				w := newWork(t, newTarget(t, says(status, "text/html", "")))
				w.ability = ability
				r := w.one(within(create, `{"attempts":1}`))
				w.ends(r, agent.Unknown, 1)
				if r.ExitCode != 3 || r.Effect != problem.EffectUnknown || strings.Contains(r.Advice, "remembers this one") != (ability == agent.Keys) {
					t.Errorf("exit status %d, effect %s, advice: %s", r.ExitCode, r.Effect, r.Advice)
				}
			})
		}
	}
	t.Run("with keys, a refusal after a bare 409 is not believed", func(t *testing.T) {
		w := newWork(t, newTarget(t, says(409, "text/html", ""), says(422, "text/html", "")))
		w.ability = agent.Keys
		w.ends(w.one(create), agent.Unknown, 2)
	})
	t.Run("with nothing, what was never reached is not promised to be sent again", func(t *testing.T) {
		w := newWork(t, newTarget(t))
		w.target.url, w.ability = "http://127.0.0.1:1", agent.None
		for range 2 {
			r := w.one(create)
			if r.Outcome != agent.NeedsPerson || len(r.Requests) != 1 || strings.Contains(r.Advice, "resume") {
				t.Errorf("%s after %d requests, advice: %s", r.Outcome, len(r.Requests), r.Advice)
			}
		}
	})
	t.Run("that was never reached, nothing has happened", func(t *testing.T) {
		x := newTarget(t, done("executed"))
		w := newWork(t, x)
		x.url = "http://127.0.0.1:1"
		r := w.one(create)
		if r.Outcome != agent.NeedsPerson || r.Effect != problem.EffectNone || len(r.Requests) != 5 {
			t.Errorf("%s, %s after %d requests", r.Outcome, r.Effect, len(r.Requests))
		}
	})
}

func TestRetryNever(t *testing.T) {
	step := create[:len(create)-1] + `,"retry":"never"}`
	t.Run("is sent once, and asked about", func(t *testing.T) {
		w := newWork(t, newTarget(t, lost).shows(operation("succeeded", "")))
		w.ends(w.one(step), agent.Executed, 1)
	})
	t.Run("is handed over where it would be sent again", func(t *testing.T) {
		w := newWork(t, newTarget(t, lost, done("executed")))
		for range 2 {
			w.ends(w.one(step), agent.Unknown, 1)
		}
	})
	t.Run("also when nothing has happened", func(t *testing.T) {
		w := newWork(t, newTarget(t, refuse(problem.RateLimited), done("executed")))
		w.ends(w.one(step), agent.NeedsPerson, 1)
	})
}
