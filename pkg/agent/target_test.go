package agent_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/einmal/einmal/pkg/agent"
	"github.com/einmal/einmal/pkg/problem"
)

// answer is how a target treats one request.
type answer func(w http.ResponseWriter, r *http.Request)

// target answers requests by a script: writes with one answer after the other, and questions likewise. The last of each is repeated.
type target struct {
	url string

	mu        sync.Mutex
	writes    []answer
	questions []answer
	keys      []string // of the writes that have arrived
	asked     int
}

// newTarget starts a target. It is started outside a bubble of synctest, in which the agent's time passes as fast as it waits.
func newTarget(t *testing.T, writes ...answer) *target {
	t.Helper()
	x := &target{writes: writes, questions: []answer{refuse(problem.OperationNotFound)}}
	server := httptest.NewServer(x)
	t.Cleanup(server.Close)
	x.url = server.URL
	return x
}

// shows is what the target answers questions with.
func (x *target) shows(questions ...answer) *target {
	x.questions = questions
	return x
}

func (x *target) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return
	}
	x.mu.Lock()
	script := &x.questions
	if r.Method != http.MethodGet {
		script = &x.writes
		x.keys = append(x.keys, r.Header.Get("Idempotency-Key"))
	} else {
		x.asked++
	}
	next := (*script)[0]
	if len(*script) > 1 {
		*script = (*script)[1:]
	}
	x.mu.Unlock()
	next(w, r)
}

// arrived are the keys of the writes that have arrived, each once, and how many they were.
func (x *target) arrived() (keys []string, writes int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	keys = slices.Clone(x.keys)
	slices.Sort(keys)
	return slices.Compact(keys), len(x.keys)
}

// questioned is how often the target was asked.
func (x *target) questioned() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.asked
}

// done is the final answer of a write.
func done(outcome string) answer {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Idempotency-Outcome", outcome)
		w.Header().Set("Operation-Id", "op_1")
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Location", "/v1/tickets/tkt_1")
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, `{"id":"tkt_1"}`)
	}
}

// accepted is 202 with an operation.
func accepted(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Idempotency-Outcome", "accepted")
	w.Header().Set("Operation-Id", "op_1")
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	fmt.Fprint(w, `{"id":"op_1","state":"queued","effect":"none","retry_after_seconds":1}`)
}

// operation is the answer to a question, with further members.
func operation(state, members string) answer {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"op_1","state":%q,"agent_run":"run-1","retry_after_seconds":1%s}`, state, members)
	}
}

// refuse is a problem as a service answers it, for now.
func refuse(code problem.Code, headers ...string) answer {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		problem.New(code, "a text that says: in progress, try again").Write(w)
	}
}

// final is a problem as it is stored and replayed.
func final(code problem.Code) answer {
	return refuse(code, "Idempotency-Outcome", "refused", "Operation-Id", "op_1")
}

// lost is no answer.
func lost(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// says is an answer of whoever it may be.
func says(status int, contentType, body string, headers ...string) answer {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

// work is a journal, and what agents do with it at a target.
type work struct {
	t        *testing.T
	path     string
	target   *target
	ability  agent.Ability
	budget   agent.Budget // of the run
	run      string
	progress func(*agent.Entry, string)
	passed   time.Duration // since the first agent was made
}

func newWork(t *testing.T, x *target) *work {
	t.Helper()
	return &work{t: t, path: filepath.Join(t.TempDir(), "journal"), target: x, ability: agent.Operations, run: "run-1"}
}

// agent lets a new agent use the journal, as after a restart.
func (w *work) agent(use func(a *agent.Agent)) {
	w.t.Helper()
	journal, err := agent.Open(w.path)
	if err != nil {
		w.t.Fatal(err)
	}
	defer journal.Close()
	place, err := agent.NewTarget(w.target.url, w.ability)
	if err != nil {
		w.t.Fatal(err)
	}
	a, err := agent.New(journal, agent.Config{Run: w.run, Targets: map[string]agent.Target{"": place}, Token: "secret", Budget: w.budget, Progress: w.progress})
	if err != nil {
		w.t.Fatal(err)
	}
	use(a)
}

// do does steps with a new agent, in a time of its own.
func (w *work) do(steps string) (results []agent.Result, err error) {
	w.t.Helper()
	parsed, err := agent.ParseSteps([]byte(steps))
	if err != nil {
		return nil, err
	}
	w.inTime(func(ctx context.Context, a *agent.Agent) { results, err = a.Do(ctx, parsed) })
	return results, err
}

// inTime lets a new agent work in a time that passes when all wait, and goes on where it was left.
func (w *work) inTime(use func(ctx context.Context, a *agent.Agent)) {
	w.t.Helper()
	synctest.Test(w.t, func(t *testing.T) {
		begun := time.Now()  // the same in every bubble
		time.Sleep(w.passed) // of the virtual clock
		w.agent(func(a *agent.Agent) { use(t.Context(), a) })
		w.passed = time.Since(begun)
	})
}

// resume settles what is open of all runs.
func (w *work) resume() {
	w.t.Helper()
	w.inTime(func(ctx context.Context, a *agent.Agent) {
		if _, err := a.Resume(ctx, ""); err != nil {
			w.t.Error(err)
		}
	})
}

// one does one step, which must come to a result.
func (w *work) one(step string) agent.Report {
	w.t.Helper()
	results, err := w.do(step)
	if err != nil || len(results) != 1 {
		w.t.Fatalf("got %d results, %v", len(results), err)
	}
	return results[0].Entry.Report()
}

// ends checks how a step has ended, and that it was sent so often, under one key.
func (w *work) ends(r agent.Report, outcome agent.Outcome, attempts int) {
	w.t.Helper()
	keys, writes := w.target.arrived()
	if r.Outcome != outcome || writes != attempts || len(keys) > 1 || len(keys) == 1 && keys[0] != r.Key {
		w.t.Errorf("%s after %d attempts with %d keys, want %s after %d: %s", r.Outcome, writes, len(keys), outcome, attempts, r.Reason)
	}
}

const create = `{"step":"create","path":"/v1/tickets","body":{"project":"ops","title":"Disk full"}}`

func within(step, budget string) string {
	return strings.TrimSuffix(step, "}") + `,"budget":` + budget + "}"
}
