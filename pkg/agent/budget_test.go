package agent_test

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/einmal/einmal/pkg/agent"
	"github.com/einmal/einmal/pkg/problem"
)

func TestBudgets(t *testing.T) {
	t.Run("attempts are counted across restarts", func(t *testing.T) {
		w := newWork(t, newTarget(t, lost))
		for range 4 {
			r := w.one(within(create, `{"attempts":5}`))
			w.ends(r, agent.Unknown, 5)
			if !strings.Contains(r.Reason, "5 attempts of 5") || r.ExitCode != 3 {
				t.Errorf("got %+v", r)
			}
		}
	})
	t.Run("an attempt of which the journal does not say how it ended counts, too", func(t *testing.T) {
		w := newWork(t, newTarget(t, lost))
		w.agent(func(a *agent.Agent) { agent.Died(t, a, create) })
		w.ends(w.one(within(create, `{"attempts":3}`)), agent.Unknown, 2)
	})
	t.Run("a larger budget lets it go on, under the same key", func(t *testing.T) {
		w := newWork(t, newTarget(t, lost, lost, done("replayed")))
		w.ends(w.one(within(create, `{"attempts":2}`)), agent.Unknown, 2)
		w.ends(w.one(within(create, `{"attempts":3}`)), agent.Replayed, 3)
	})
	t.Run("the deadline runs from the journal, whatever happens in between", func(t *testing.T) {
		w := newWork(t, newTarget(t, refuse(problem.StoreUnavailable)))
		r := w.one(within(create, `{"attempts":2,"deadline_seconds":100}`))
		if r.Outcome != agent.NeedsPerson || !strings.Contains(r.Reason, "attempts") {
			t.Errorf("got %+v", r)
		}
		w.passed += 101 * time.Second
		r = w.one(within(create, `{"attempts":9,"deadline_seconds":100}`))
		if _, writes := w.target.arrived(); writes != 2 || !strings.Contains(r.Reason, "deadline") {
			t.Errorf("%d requests: %s", writes, r.Reason)
		}
	})
	t.Run("the wait for an answer ends with the deadline", func(t *testing.T) {
		left := make(chan struct{})
		hang := func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			close(left)
		}
		w := newWork(t, newTarget(t, hang))
		steps, err := agent.ParseSteps([]byte(within(create, `{"deadline_seconds":1}`)))
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		w.agent(func(a *agent.Agent) { // in real time: a hanging server is not what synctest waits for
			results, err := a.Do(t.Context(), steps)
			if err != nil || results[0].Entry.End.Outcome != agent.Unknown || time.Since(begun) > 10*time.Second {
				t.Errorf("got %+v, %v after %v", results, err, time.Since(begun))
			}
		})
		<-left
	})
	t.Run("of a run, attempts are counted over its steps", func(t *testing.T) {
		w := newWork(t, newTarget(t, done("executed"), lost))
		w.budget = agent.Budget{Attempts: 3}
		results, err := w.do(create + `{"step":"second","path":"/v1/x"}`)
		if err != nil || len(results) != 2 || !strings.Contains(results[1].Entry.End.Reason, "of the run") {
			t.Fatalf("got %+v, %v", results, err)
		}
		if _, writes := w.target.arrived(); writes != 3 {
			t.Errorf("%d requests, want 3", writes)
		}
	})
	t.Run("of a run, the deadline runs from its first step", func(t *testing.T) {
		w := newWork(t, newTarget(t, done("executed"), refuse(problem.RateLimited)))
		w.budget = agent.Budget{DeadlineSeconds: 100}
		w.one(create)
		w.passed += 101 * time.Second
		r := w.one(`{"step":"second","path":"/v1/x"}`)
		if _, writes := w.target.arrived(); writes != 1 || r.Outcome != agent.NeedsPerson || !strings.Contains(r.Reason, "of the run") {
			t.Errorf("%d requests, %+v", writes, r)
		}
	})
	t.Run("costs are counted once an effect, and not of what was refused", func(t *testing.T) {
		w := newWork(t, newTarget(t, lost, done("executed"), final(problem.EffectRefused), done("executed")))
		ten := int64(10)
		w.budget = agent.Budget{Cost: &ten}
		for step, want := range []agent.Outcome{agent.Executed, agent.Refused, agent.Executed, agent.NeedsPerson} {
			if r := w.one(fmt.Sprintf(`{"step":"step-%d","path":"/v1/x","cost":4}`, step)); r.Outcome != want {
				t.Errorf("step %d: %s, want %s: %s", step, r.Outcome, want, r.Reason)
			}
		}
		if _, writes := w.target.arrived(); writes != 4 {
			t.Errorf("%d requests, want 4", writes)
		}
	})
	t.Run("of a run are kept when it is resumed, and whoever resumes may say otherwise", func(t *testing.T) {
		hundred, more := int64(100), int64(200)
		for name, test := range map[string]struct{ first, resumed agent.Budget }{
			"cost":     {agent.Budget{Cost: &hundred}, agent.Budget{Cost: &more}},
			"deadline": {agent.Budget{DeadlineSeconds: 100}, agent.Budget{DeadlineSeconds: 1000}},
			"attempts": {agent.Budget{Attempts: 1}, agent.Budget{Attempts: 2}},
		} {
			w := newWork(t, newTarget(t, done("executed")))
			w.budget = test.first
			w.one(`{"step":"first","path":"/v1/x","cost":60}`)
			if name == "deadline" {
				w.passed += 101 * time.Second
			}
			writes := func() int { _, n := w.target.arrived(); return n }
			if r := w.one(`{"step":"second","path":"/v1/x","cost":60}`); r.Outcome != agent.NeedsPerson || !strings.Contains(r.Reason, "of the run") {
				t.Errorf("%s: %s, %s", name, r.Outcome, r.Reason)
			}
			w.budget = agent.Budget{}
			if w.resume(); writes() != 1 {
				t.Errorf("%s: resume has spent more than the run was given", name)
			}
			if w.one(`{"step":"second","path":"/v1/x","cost":60}`); writes() != 1 {
				t.Errorf("%s: the next do has spent more than the run was given", name)
			}
			w.budget = test.resumed
			if w.resume(); writes() != 2 {
				t.Errorf("%s: a larger budget of the run did not let it go on", name)
			}
		}
	})
	t.Run("of a run are for whoever goes on with it what somebody has made of them to resume it", func(t *testing.T) {
		w := newWork(t, newTarget(t, done("executed")))
		cost := func(n int64) agent.Budget { return agent.Budget{Cost: &n} }
		for i, command := range []struct {
			budget agent.Budget
			step   int // 0: resume
			want   int // requests
		}{
			{cost(100), 1, 1}, {agent.Budget{}, 2, 1}, {cost(120), 0, 2}, {agent.Budget{}, 3, 2}, {cost(180), 0, 3}, {agent.Budget{}, 4, 3},
		} {
			if w.budget = command.budget; command.step == 0 {
				w.resume()
			} else {
				w.one(fmt.Sprintf(`{"step":"step-%d","path":"/v1/x","cost":60}`, command.step))
			}
			if _, writes := w.target.arrived(); writes != command.want {
				t.Errorf("%d requests after command %d, want %d", writes, i, command.want)
			}
		}
		if r := w.one(`{"step":"step-4","path":"/v1/x","cost":60}`); !strings.Contains(r.Reason, "180 of 180") {
			t.Errorf("the next one has %s", r.Reason)
		}
	})
	t.Run("no cost is too large to be added up", func(t *testing.T) {
		w := newWork(t, newTarget(t, done("executed")))
		w.one(`{"step":"first","path":"/v1/x","cost":4}`)
		for _, limit := range []int64{10, math.MaxInt64} {
			w.budget = agent.Budget{Cost: &limit}
			if r := w.one(`{"step":"second","path":"/v1/x","cost":9223372036854775807}`); r.Outcome != agent.NeedsPerson || r.Shortage.Least != math.MaxInt64 {
				t.Errorf("of %d: %s, %s", limit, r.Outcome, r.Reason)
			}
		}
	})
	t.Run("what costs nothing is done where nothing is left", func(t *testing.T) {
		w := newWork(t, newTarget(t, done("executed"), lost, done("executed")))
		for _, limit := range []int64{10, 5} { // the second is less than is spent
			w.budget = agent.Budget{Cost: &limit}
			if r := w.one(fmt.Sprintf(`{"step":"free-%d","path":"/v1/x","cost":%d}`, limit, limit/10*10)); r.Outcome != agent.Executed {
				t.Errorf("within %d: %s, %s", limit, r.Outcome, r.Reason)
			}
		}
	})
	t.Run("a step that costs more than it may is not sent", func(t *testing.T) {
		w := newWork(t, newTarget(t, done("executed")))
		w.ends(w.one(`{"step":"x","path":"/v1/x","cost":5,"budget":{"cost":0}}`), agent.NeedsPerson, 0)
	})
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]int64{
		"": 0, "0": 0, "7": 7, " 7 ": 7, "-5": 0, "1.5": 0, "soon": 0, "+3": 0,
		"99999999999999999999999":                         9223372036,
		now.Add(90 * time.Second).Format(http.TimeFormat): 90,
		now.Add(-time.Hour).Format(http.TimeFormat):       0,
	} {
		if got := agent.RetryAfter(http.Header{"Retry-After": {value}}, now); got != want {
			t.Errorf("%q: %d s, want %d", value, got, want)
		}
	}
	t.Run("a date is compared with the target's own clock", func(t *testing.T) {
		h := http.Header{"Retry-After": {now.Add(90 * time.Second).Format(http.TimeFormat)}, "Date": {now.Add(80 * time.Second).Format(http.TimeFormat)}}
		if got := agent.RetryAfter(h, now); got != 10 {
			t.Errorf("%d s, want 10", got)
		}
	})
	for _, test := range []struct {
		value          string
		least, longest time.Duration
	}{
		{"20", 20 * time.Second, 21 * time.Second}, {"0", 0, time.Second}, {"-1", 0, time.Second},
	} {
		t.Run(fmt.Sprintf("%q is waited for, and jitter on top", test.value), func(t *testing.T) {
			w := newWork(t, newTarget(t, refuse429(test.value), done("executed")))
			r := w.one(create)
			w.ends(r, agent.Executed, 2)
			if waited := r.Requests[1].At.Sub(r.Requests[0].Ended); waited < test.least || waited > test.longest {
				t.Errorf("waited %v, want %v to %v", waited, test.least, test.longest)
			}
		})
	}
	for name, value := range map[string]string{"longer than the longest wait": "61", "huge": "999999999999999999999", "a date in a year": now.AddDate(99, 0, 0).Format(http.TimeFormat)} {
		t.Run(name+" is not waited for, but handed over", func(t *testing.T) {
			w := newWork(t, newTarget(t, refuse429(value)))
			for range 2 { // and a restart asks no sooner
				r := w.one(create)
				w.ends(r, agent.NeedsPerson, 1)
				if w.passed > time.Second {
					t.Errorf("it took %v", w.passed)
				}
			}
		})
	}
	for _, code := range []problem.Code{problem.OperationInProgress, problem.StoreUnavailable, problem.EnvironmentLocked} {
		t.Run("is waited for after "+string(code), func(t *testing.T) {
			w := newWork(t, newTarget(t, refuse(code), done("executed")))
			r := w.one(create)
			w.ends(r, agent.Executed, 2)
			entry, _ := problem.Lookup(code)
			if waited, asked := r.Requests[1].At.Sub(r.Requests[0].Ended), time.Duration(entry.RetryAfterSeconds)*time.Second; waited < asked || waited > asked+time.Second {
				t.Errorf("waited %v, want %v", waited, asked)
			}
		})
	}
	for body, outcome := range map[string]agent.Outcome{"9223372036854775807": agent.NeedsPerson, "-7": agent.Executed} {
		t.Run("is read from the body, where it may be "+body, func(t *testing.T) {
			w := newWork(t, newTarget(t, says(503, problem.ContentType, `{"code":"store-unavailable","status":503,"effect":"none","retry_after_seconds":`+body+`}`), done("executed")))
			if r := w.one(create); r.Outcome != outcome {
				t.Errorf("got %+v", r)
			}
		})
	}
	t.Run("is waited for also when somebody on the way has said it, before anybody is asked again", func(t *testing.T) {
		w := newWork(t, newTarget(t, says(503, "text/html", "busy", "Retry-After", "20"), done("executed")).shows(refuse(problem.OperationNotFound)))
		r := w.one(create)
		w.ends(r, agent.Executed, 2)
		if waited := r.Requests[1].At.Sub(r.Requests[0].Ended); waited < 20*time.Second {
			t.Errorf("waited %v, want 20 s", waited)
		}
	})
	t.Run("beyond the deadline it is handed over at once", func(t *testing.T) {
		w := newWork(t, newTarget(t, refuse429("30")))
		r := w.one(within(create, `{"deadline_seconds":20}`))
		w.ends(r, agent.NeedsPerson, 1)
		if !strings.Contains(r.Reason, "deadline") || w.passed > time.Second {
			t.Errorf("after %v: %s", w.passed, r.Reason)
		}
	})
	t.Run("is kept across a restart", func(t *testing.T) {
		w := newWork(t, newTarget(t, refuse429("40"), done("executed")))
		w.ends(w.one(within(create, `{"attempts":1}`)), agent.NeedsPerson, 1)
		r := w.one(within(create, `{"attempts":2}`))
		w.ends(r, agent.Executed, 2)
		if waited := r.Requests[1].At.Sub(r.Requests[0].Ended); waited < 40*time.Second {
			t.Errorf("waited %v, want 40 s", waited)
		}
	})
}

// refuse429 is 429 with a Retry-After of its own.
func refuse429(value string) answer {
	return func(w http.ResponseWriter, _ *http.Request) {
		p := problem.New(problem.RateLimited, "")
		p.RetryAfterSeconds = 0
		w.Header().Set("Retry-After", value)
		p.Write(w)
	}
}

// Full jitter: anything up to a limit that doubles.
func TestBackoff(t *testing.T) {
	limit := 500 * time.Millisecond
	for n := 1; n <= 40; n++ {
		low, high := time.Hour, time.Duration(0)
		for range 300 {
			d := agent.Backoff(n)
			low, high = min(low, d), max(high, d)
		}
		if high > limit || high < limit*9/10 || low > limit/10 {
			t.Errorf("try %d: %v to %v, want 0 to %v", n, low, high, limit)
		}
		limit = min(2*limit, 30*time.Second)
	}
}

// Targets that never come to an end, and say nothing of how often they want to be asked.
func TestThereIsNoHotLoop(t *testing.T) {
	for name, x := range map[string]*target{
		"one that accepts and then drops":      newTarget(t, lost).shows(lost),
		"one whose operation goes on for ever": newTarget(t, accepted).shows(says(200, "application/json", `{"id":"op_1","state":"running","agent_run":"run-1"}`)),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWork(t, x)
			w.one(create)
			_, writes := w.target.arrived()
			if requests := writes + w.target.questioned(); writes > 5 || requests > 200 || w.passed < 14*time.Minute {
				t.Errorf("%d requests, %d of them writes, in %v", requests, writes, w.passed)
			}
		})
	}
}
