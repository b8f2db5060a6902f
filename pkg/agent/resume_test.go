package agent_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/einmal/einmal/pkg/agent"
	"github.com/einmal/einmal/pkg/problem"
)

// service keeps the contract: an effect for each key, an approval that takes two questions, and the same answer to the same key.
type service struct {
	mu      sync.Mutex
	effects map[string]string // key to path
	polls   int
	arrive  func(request int) // what happens when a request has arrived and nothing has been done
	leave   func(request int) // what happens when its effect is there and no answer was given
	arrived int
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.arrived
	s.arrived++
	s.arrive(n)
	key := r.Header.Get("Idempotency-Key")
	path, seen := s.effects[key]
	w.Header().Set("Content-Type", "application/json")
	switch {
	case strings.HasPrefix(r.URL.Path, "/v1/operations/"):
		if s.polls++; s.polls < 2 {
			fmt.Fprint(w, `{"id":"op_approved","state":"awaiting_approval","agent_run":"run-1"}`)
			return
		}
		fmt.Fprint(w, `{"id":"op_approved","state":"succeeded","agent_run":"run-1","response":{"status":201,"body":{}}}`)
		return
	case r.Method == http.MethodGet && !seen:
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"code":"operation-not-found","status":404,"effect":"none"}`)
		return
	case r.Method == http.MethodGet:
		fmt.Fprint(w, `{"id":"op_1","state":"succeeded","agent_run":"run-1","response":{"status":201,"body":{}}}`)
		return
	case !seen:
		path = r.URL.Path
		s.effects[key] = path
	}
	s.leave(n)
	if path == "/v1/deployments" && s.polls < 2 {
		w.Header().Set("Idempotency-Outcome", "accepted")
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprint(w, `{"id":"op_approved","state":"awaiting_approval","agent_run":"run-1"}`)
		return
	}
	w.Header().Set("Idempotency-Outcome", map[bool]string{false: "executed", true: "replayed"}[seen])
	w.WriteHeader(http.StatusCreated)
	fmt.Fprint(w, `{}`)
}

const workflow = `{"step":"ticket","path":"/v1/tickets"}
{"step":"comment","path":"/v1/tickets/1/comments"}
{"step":"deploy","path":"/v1/deployments"}
{"step":"close","path":"/v1/tickets/1/status"}`

// An agent is killed whenever a request of its workflow has arrived, before and after its effect: what is on disk at that moment is all that the
// next agent has. Each step is done once all the same, and the keys stay.
func TestAWorkflowIsResumedWhereverItWasInterrupted(t *testing.T) {
	type moment struct {
		journal []byte
		effects map[string]string
		polls   int
	}
	var moments []moment
	w := newWork(t, nil)
	s := &service{effects: map[string]string{}}
	note := func(int) {
		text, err := os.ReadFile(w.path)
		if err != nil {
			t.Error(err)
		}
		moments = append(moments, moment{text, maps.Clone(s.effects), s.polls})
	}
	s.arrive, s.leave = note, note
	w.target = &target{url: serve(t, s)}
	if results, err := w.do(workflow); err != nil || len(results) != 4 {
		t.Fatalf("got %+v, %v", results, err)
	}
	if len(moments) < 10 {
		t.Fatalf("%d moments", len(moments))
	}
	for i, m := range moments {
		t.Run(fmt.Sprintf("at moment %d", i), func(t *testing.T) {
			after := newWork(t, nil)
			after.path = filepath.Join(t.TempDir(), "journal")
			after.passed = w.passed
			write(t, after.path, m.journal)
			s := &service{effects: m.effects, polls: m.polls, arrive: func(int) {}, leave: func(int) {}}
			after.target = &target{url: w.target.url} // an entry is bound to it
			handlers.Store(w.target.url, s)
			before, err := agent.Entries(m.journal)
			if err != nil {
				t.Fatal(err)
			}
			results, err := after.do(workflow)
			if err != nil || len(results) != 4 {
				t.Fatalf("got %+v, %v", results, err)
			}
			for n, r := range results {
				if r.Entry.End.Outcome.ExitCode() != 0 || n < len(before) && r.Entry.Key != before[n].Key {
					t.Errorf("step %s is %s, under the key %s", r.Entry.Step, r.Entry.End.Outcome, r.Entry.Key)
				}
			}
			paths := slices.Sorted(maps.Values(s.effects))
			if want := []string{"/v1/deployments", "/v1/tickets", "/v1/tickets/1/comments", "/v1/tickets/1/status"}; !slices.Equal(paths, want) {
				t.Errorf("effects %v, want each once", paths)
			}
		})
	}
}

// handlers are who answers at an address now.
var handlers sync.Map

// serve starts a server at whose address the service can be replaced, as by a restore.
func serve(t *testing.T, s *service) (url string) {
	t.Helper()
	x := newTarget(t)
	x.writes = []answer{func(w http.ResponseWriter, r *http.Request) { now(x.url).ServeHTTP(w, r) }}
	x.questions = x.writes
	handlers.Store(x.url, s)
	return x.url
}

func now(url string) *service {
	s, _ := handlers.Load(url)
	return s.(*service)
}

// A runtime that dispatches each call twice, milliseconds apart.
func TestAStepThatIsDispatchedTwiceIsDoneOnce(t *testing.T) {
	w := newWork(t, newTarget(t, done("executed")))
	steps, err := agent.ParseSteps([]byte(create))
	if err != nil {
		t.Fatal(err)
	}
	w.agent(func(a *agent.Agent) {
		var both sync.WaitGroup
		results := make([][]agent.Result, 2)
		for i := range results {
			both.Go(func() { results[i], _ = a.Do(context.Background(), steps) })
		}
		both.Wait()
		if len(results[0]) != 1 || len(results[1]) != 1 || results[0][0].Existing == results[1][0].Existing || results[0][0].Entry != results[1][0].Entry {
			t.Errorf("got %+v", results)
		}
	})
	if _, writes := w.target.arrived(); writes != 1 {
		t.Errorf("%d requests, want 1", writes)
	}
}

// Whatever a target says can be journaled.
func TestWhatNobodyCanReadIsJournaled(t *testing.T) {
	x := newTarget(t, says(409, "application/problem+json", `{"code":"ticket-closed","status":409,"detail":"`+strings.Repeat("ä", 100_000)+`"}`,
		"Idempotency-Outcome", "refused", "Operation-Id", "op_\xff\xfe"))
	w := newWork(t, x)
	w.ends(w.one(create), agent.Refused, 1)
	entries, err := agent.Read(w.path)
	if err != nil || len(entries[0].Requests[0].Seen.Detail) > 2000 {
		t.Errorf("%v", err)
	}
	x.writes = []answer{says(201, "application/json", "{\"x\":\"\xff\"}", "Idempotency-Outcome", "executed", "Operation-Id", "\xff")}
	x.shows(operation("succeeded", `,"response":{"status":201,"location":"/\u00ff","body":{}}`))
	r := w.one(`{"step":"next","path":"/v1/x"}`)
	if r.Outcome != agent.Executed {
		t.Errorf("got %+v", r)
	}
}

// An agent dies when an answer is in the journal, and before it has drawn its conclusion. The next one draws it, and needs nobody for that.
func TestWhatWasSeenIsSettledWithoutAsking(t *testing.T) {
	for name, test := range map[string]struct {
		ability agent.Ability
		write   answer
		want    agent.Outcome
	}{
		"an execution":                      {agent.Operations, done("executed"), agent.Executed},
		"a replay":                          {agent.Operations, done("replayed"), agent.Replayed},
		"a final refusal":                   {agent.Operations, final(problem.TicketClosed), agent.Refused},
		"a refusal of the request":          {agent.Operations, refuse(problem.ValidationFailed), agent.Refused},
		"a conflict":                        {agent.Operations, refuse(problem.IdempotencyKeyReused), agent.Conflict},
		"a success of a target with keys":   {agent.Keys, says(201, "application/json", `{"id":"tkt_1"}`), agent.Executed},
		"a success of a target without":     {agent.None, says(201, "application/json", `{"id":"tkt_1"}`), agent.Executed},
		"a refusal of a target without":     {agent.None, says(404, "text/plain", ""), agent.Refused},
		"no answer of a target without":     {agent.None, lost, agent.Unknown},
		"a closed door of a target without": {agent.None, says(401, "text/plain", ""), agent.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWork(t, newTarget(t, test.write))
			w.ability = test.ability
			first := w.one(create)
			text, err := os.ReadFile(w.path)
			if err != nil {
				t.Fatal(err)
			}
			ends := bounds(text)
			write(t, w.path, text[:ends[len(ends)-2]]) // without the last record
			again := w.one(create)
			w.ends(again, test.want, 1)
			if n := w.target.questioned(); n != 0 || (first.Response == nil) != (again.Response == nil) || first.Response != nil && string(first.Response.Body) != string(again.Response.Body) {
				t.Errorf("%d questions; %+v has become %+v", n, first.Response, again.Response)
			}
		})
	}
}
