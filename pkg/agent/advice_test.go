package agent_test

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/einmal/einmal/pkg/agent"
	"github.com/einmal/einmal/pkg/problem"
)

// Whoever does what the advice says, and no more, has it go on, under the same key.
func TestTheAdviceAboutABudgetCanBeFollowed(t *testing.T) {
	two := int64(2)
	later := refuse(problem.StoreUnavailable)
	for name, test := range map[string]struct {
		step    string
		run     agent.Budget
		answers []answer
		passes  time.Duration // before the first request is due
		member  string
	}{
		"attempts of a step":         {step: `{"attempts":1}`, answers: []answer{later}, member: "attempts"},
		"the longest wait of a step": {step: `{"longest_wait_seconds":1}`, answers: []answer{refuse429("30")}, member: "longest_wait_seconds"},
		"the deadline of a step":     {step: `{"deadline_seconds":20}`, answers: []answer{refuse429("30")}, member: "deadline_seconds"},
		"the cost of a step":         {step: `{"cost":2}`, member: "cost"},
		"attempts of a run":          {step: `{}`, run: agent.Budget{Attempts: 1}, answers: []answer{later}, member: "attempts"},
		"the longest wait of a run":  {step: `{}`, run: agent.Budget{LongestWaitSeconds: 1}, answers: []answer{refuse429("30")}, member: "longest_wait_seconds"},
		"the deadline of a run":      {step: `{}`, run: agent.Budget{DeadlineSeconds: 20}, answers: []answer{refuse429("30")}, member: "deadline_seconds"},
		"the cost of a run":          {step: `{}`, run: agent.Budget{Cost: &two}, member: "cost"},
	} {
		t.Run("which is "+name, func(t *testing.T) {
			w := newWork(t, newTarget(t, append(test.answers, done("executed"))...))
			w.budget = test.run
			step := strings.TrimSuffix(create, "}") + `,"cost":3}`
			first := w.one(within(step, test.step))
			if first.Outcome != agent.NeedsPerson || first.Shortage == nil || first.Shortage.Member != test.member {
				t.Fatalf("%s, %s, %+v", first.Outcome, first.Reason, first.Shortage)
			}
			w.budget = agent.Budget{}
			w.passed += 10 * time.Minute // somebody reads it, and thinks

			entries, err := agent.Read(w.path)
			if err != nil {
				t.Fatal(err)
			}
			var advice string // as show tells it now
			w.inTime(func(context.Context, *agent.Agent) { advice = entries[0].Report().Advice })
			if budget := regexp.MustCompile(`"budget": (\{.*?\})`).FindStringSubmatch(advice); budget != nil {
				w.one(within(step, budget[1]))
			} else {
				w.budget = flags(t, advice)
				w.inTime(func(ctx context.Context, a *agent.Agent) {
					if _, err := a.Resume(ctx, "run-1"); err != nil {
						t.Error(err)
					}
				})
			}
			if entries, err = agent.Read(w.path); err != nil || entries[0].End.Outcome != agent.Executed || entries[0].Key != first.Key {
				t.Errorf("it said %q; and then: %+v, %v", advice, entries[0].End, err)
			}
		})
	}
}

// flags are the budget of a run that an advice names.
func flags(t *testing.T, advice string) (b agent.Budget) {
	t.Helper()
	flag := regexp.MustCompile(`--run run-1 --([a-z-]+) (\d+) or more`).FindStringSubmatch(advice)
	if flag == nil {
		t.Fatalf("no flag is named: %s", advice)
	}
	if err := json.Unmarshal([]byte(`{"`+strings.ReplaceAll(flag[1], "-", "_")+`":`+flag[2]+`}`), &b); err != nil || b == (agent.Budget{}) {
		t.Fatalf("%v: %s", err, advice)
	}
	return b
}

func TestTheNameOfARunIsPastedAsItIs(t *testing.T) {
	w := newWork(t, newTarget(t, lost))
	w.run, w.budget = "it's;$(reboot)", agent.Budget{Attempts: 1}
	if r := w.one(create); !strings.Contains(r.Advice, `--run 'it'\''s;$(reboot)' --attempts 2 or more`) {
		t.Errorf("it says %s", r.Advice)
	}
}

// A wrong URL is part of the step, and there is a way out of it.
func TestAWrongTarget(t *testing.T) {
	for name, test := range map[string]struct {
		ability agent.Ability
		write   answer
	}{
		"that keeps the contract": {agent.Operations, refuse(problem.RouteNotFound)},
		"with another method":     {agent.Operations, refuse(problem.MethodNotAllowed)},
		"that has only keys":      {agent.Keys, says(http.StatusNotFound, "text/html", "")},
	} {
		t.Run(name+" is told, and the step goes to the right one as another", func(t *testing.T) {
			w := newWork(t, newTarget(t, test.write))
			w.ability = test.ability
			r := w.one(create)
			w.ends(r, agent.Refused, 1)
			for _, want := range []string{"no POST /v1/tickets at " + w.target.url, "the target's URL", "retry_of: create"} {
				if !strings.Contains(r.Advice, want) {
					t.Errorf("it does not say %q: %s", want, r.Advice)
				}
			}
			w.target = newTarget(t, done("executed"))
			if _, err := w.do(create); err == nil || !strings.Contains(err.Error(), "retry_of create") {
				t.Errorf("the same step at the right one: %v", err)
			}
			w.ability = agent.Operations
			w.ends(w.one(`{"step":"create-there","retry_of":"create","path":"/v1/tickets"}`), agent.Executed, 1)
		})
	}
	t.Run("where nobody is has done nothing, and another run may go to the right one", func(t *testing.T) {
		w := newWork(t, newTarget(t, done("executed")))
		there := w.target.url
		w.target.url = "http://127.0.0.1:1"
		if r := w.one(create); !strings.Contains(r.Advice, "If http://127.0.0.1:1 is the right place") || !strings.Contains(r.Advice, "begin another run") {
			t.Errorf("it says %s", r.Advice)
		}
		w.target.url, w.run = there, "run-2"
		w.ends(w.one(create), agent.Executed, 1)
	})
}

// What the agent calls things inside is not what it tells people.
func TestWhatWasSeenIsToldInWords(t *testing.T) {
	for name, test := range map[string]struct {
		ability agent.Ability
		write   answer
		says    string
	}{
		"nothing":          {agent.Operations, lost, "no answer came"},
		"a busy target":    {agent.Keys, says(503, "text/plain", ""), "503 too busy, or asked too often"},
		"a bare conflict":  {agent.Keys, says(409, "text/plain", ""), "409 in progress, or done already"},
		"a closed door":    {agent.None, says(401, "text/plain", ""), "401 not let in"},
		"a failure":        {agent.None, says(500, "text/plain", ""), "500 it has failed"},
		"a bare refusal":   {agent.None, says(422, "text/plain", ""), "422 refused"},
		"a page":           {agent.None, says(302, "text/html", ""), "302 a redirect, which is not followed"},
		"an unknown code":  {agent.Operations, says(409, problem.ContentType, `{"code":"moon-too-bright","status":409}`), "409 a problem of a code that this agent does not know"},
		"a code":           {agent.Operations, final(problem.TicketClosed), "409 ticket-closed: a text"},
		"an empty success": {agent.Operations, says(201, "text/plain", ""), "201 an answer that can't be understood: "},
	} {
		t.Run("as "+name, func(t *testing.T) {
			w := newWork(t, newTarget(t, test.write))
			w.ability = test.ability
			r := w.one(within(create, `{"attempts":1}`))
			if said := r.Requests[0].Seen.String(); !strings.Contains(said, test.says) {
				t.Errorf("it says %q, want %q", said, test.says)
			}
		})
	}
}

// Which of two commands was meant can only be said by somebody who sees both.
func TestAChangedStepIsShownBesideWhatItWas(t *testing.T) {
	w := newWork(t, newTarget(t, done("executed")))
	w.one(create)
	long := strings.Repeat("ö", 1000)
	_, err := w.do(strings.Replace(create, "Disk full", long, 1))
	if err == nil {
		t.Fatal("it was accepted")
	}
	for _, want := range []string{"step create of run run-1", `it was POST /v1/tickets {"project":"ops","title":"Disk full"}`, `now it is POST /v1/tickets {"project":"ops","title":"ööö`, "a step of another name"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("it does not say %q: %v", want, err)
		}
	}
	if strings.Contains(err.Error(), long) {
		t.Error("it prints the whole of a long command")
	}
}
