package scenarios

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"

	"github.com/einmal/einmal/e2e/faults"
	"github.com/einmal/einmal/e2e/harness"
	"github.com/einmal/einmal/e2e/record"
	agents "github.com/einmal/einmal/pkg/agent" // agent is the caller here
)

// Errand is what an agent is sent on: a journal, and the way to a service, on which answers are lost or not.
type Errand struct {
	*Stage
	lossy   bool
	service *harness.Service
	proxy   *faults.HTTPProxy
	journal string
	run     string
}

// EachWay plays a part on a way on which every answer arrives, and then on one on which every second one is lost, the very first included. Each has a
// journal of its own.
func (s *Stage) EachWay(service *harness.Service, play func(e *Errand) (effects int)) (effects int) {
	for _, lossy := range []bool{false, true} {
		s.part = "answers arrive"
		if lossy {
			s.part = "every second answer is lost"
		}
		record.From(s.ctx).Part(s.part)
		e := &Errand{Stage: s, lossy: lossy, service: service, proxy: s.HTTPProxy(service), journal: s.lab.NewJournal(), run: fmt.Sprintf("run-%v", lossy)}
		e.Lose()
		effects += play(e)
		s.Check(!lossy || e.proxy.Fired() > 0, "no answer was lost, so nothing was shown")
	}
	s.part = ""
	return effects
}

// Lose loses every second answer from now on, on a way on which that happens.
func (e *Errand) Lose() {
	if e.lossy {
		e.proxy.EverySecond(faults.LoseAnswer)
	}
}

// Spare lets every answer arrive from now on.
func (e *Errand) Spare() { e.proxy.EverySecond(0) }

// todo is a step of a step file. Members that are not given have their defaults.
type todo map[string]any

// opens is the step that opens a ticket.
func (e *Errand) opens(name string) todo {
	return todo{"step": name, "path": "/v1/tickets", "body": e.NewTicket()}
}

// with is the step with another member.
func (s todo) with(member string, value any) todo {
	changed := maps.Clone(s)
	changed[member] = value
	return changed
}

// Start starts an agent that does steps.
func (e *Errand) Start(steps ...todo) *harness.Agent { return e.StartUnder(nil, steps...) }

// StartUnder starts it with a command in front of it.
func (e *Errand) StartUnder(prefix []string, steps ...todo) *harness.Agent {
	var lines []byte
	for _, s := range steps {
		line, err := json.Marshal(s)
		e.must(err)
		lines = append(append(lines, line...), '\n')
	}
	started, err := e.lab.Agent(harness.AgentSettings{
		Args: []string{"do", "-", "--run", e.run, "--target", e.proxy.URL()}, Journal: e.journal, Token: agent, Steps: string(lines), Under: prefix,
	})
	e.must(err)
	return started
}

// Do lets an agent do steps to its end.
func (e *Errand) Do(steps ...todo) harness.AgentResult { return e.Result(e.Start(steps...)) }

// Resume lets an agent settle what is open.
func (e *Errand) Resume() harness.AgentResult {
	started, err := e.lab.Agent(harness.AgentSettings{Args: []string{"resume"}, Journal: e.journal, Token: agent})
	e.must(err)
	return e.Result(started)
}

// Result waits for an agent's end.
func (e *Errand) Result(a *harness.Agent) harness.AgentResult {
	result, err := a.Result(e.ctx)
	e.must(err)
	return result
}

// KillAgent ends an agent as a crash does.
func (e *Errand) KillAgent(a *harness.Agent) {
	e.must(a.Kill())
	e.Struck()
}

// Entries are those of the journal.
func (e *Errand) Entries() []*agents.Entry {
	entries, err := agents.Read(e.journal)
	e.must(err)
	return entries
}

// Entry is the journal's only one.
func (e *Errand) Entry() *agents.Entry {
	entries := e.Entries()
	e.Check(len(entries) == 1, "the journal has %d entries, want 1", len(entries))
	return entries[0]
}

// EndsAll ends the scenario unless an agent has done all of its steps, each under one key, in as many attempts as its journal says.
func (e *Errand) EndsAll(what string, result harness.AgentResult, steps int) {
	e.Check(result.Status == 0 && len(result.Steps) == steps, "%s: exit status %d and %d steps, want 0 and %d: %s\n%s", what, result.Status, len(result.Steps), steps, result.Error, result.Log)
	for _, s := range result.Steps {
		e.Check(s.Outcome == agents.Executed || s.Outcome == agents.Replayed, "%s: step %s is %s: %s", what, s.Step, s.Outcome, s.Reason)
		e.Check(s.Response != nil && s.Response.Status < 300, "%s: step %s has the answer %+v", what, s.Step, s.Response)
		e.Counted(what, s.Report)
	}
}

// Ends ends the scenario unless an agent has ended at its last step, so.
func (e *Errand) Ends(what string, result harness.AgentResult, status int, outcome agents.Outcome) agents.Report {
	e.Check(result.Status == status && len(result.Steps) > 0, "%s: exit status %d and %d steps, want %d: %s\n%s", what, result.Status, len(result.Steps), status, result.Error, result.Log)
	last := result.Steps[len(result.Steps)-1].Report
	e.Check(last.Outcome == outcome && last.ExitCode == status, "%s: step %s is %s, exit status %d, want %s: %s", what, last.Step, last.Outcome, last.ExitCode, outcome, last.Reason)
	e.Check(last.Key != "" && last.Advice != "", "%s: the report has no key or no advice", what)
	e.Counted(what, last)
	return last
}

// Counted ends the scenario unless every request of a step that has arrived at the proxy is an attempt in the journal.
func (e *Errand) Counted(what string, r agents.Report) {
	attempts := 0
	for _, request := range r.Requests {
		if request.Kind == agents.AttemptRequest {
			attempts++
		}
	}
	e.Check(e.proxy.Writes(r.Key) <= attempts, "%s: %d requests of step %s were sent, and %d are in the journal", what, e.proxy.Writes(r.Key), r.Step, attempts)
}

// OneTicket ends the scenario unless the key of an entry has made one ticket.
func (e *Errand) OneTicket(what string, entry *agents.Entry) {
	n := e.TicketsOf(entry.Key)
	e.Check(n == 1, "%s: %d tickets, want 1", what, n)
}

// AwaitHeld waits until a request of the agent stands at the proxy.
func (e *Errand) AwaitHeld() {
	e.Await("a request stands at the proxy", func() bool { return e.proxy.Held() > 0 })
}

// Damage changes the journal behind the agents' backs.
func (e *Errand) Damage(change func(journal []byte) []byte) {
	text, err := os.ReadFile(e.journal)
	e.must(err)
	e.must(os.WriteFile(e.journal, change(text), 0o600))
	e.Struck()
}
