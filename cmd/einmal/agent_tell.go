package main

import (
	"cmp"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/einmal/einmal/pkg/agent"
)

// told is what an agent has to say in the end.
type told struct {
	ExitCode int       `json:"exit_code"`
	Error    string    `json:"error,omitzero"` // its name
	Detail   string    `json:"detail,omitzero"`
	Cut      int       `json:"cut_bytes,omitzero"` // of a torn record of the journal
	Steps    []oneTold `json:"steps"`

	short bool // one line a step, whatever its outcome
	whole bool // everything, whatever its outcome
}

// oneTold is a step of it.
type oneTold struct {
	Disposition string `json:"disposition"`         // created, existing
	InTheWay    bool   `json:"in_the_way,omitzero"` // nobody asked for it: it is open, and nothing new is begun before it is settled
	agent.Report
}

// add adds a step. The exit status is that of the first that is not done.
func (t *told) add(r agent.Result) {
	one := oneTold{"created", r.InTheWay, r.Entry.Report()}
	if r.Existing {
		one.Disposition = "existing"
	}
	t.Steps = append(t.Steps, one)
	t.ExitCode = cmp.Or(t.ExitCode, one.ExitCode)
}

// tell says what came of some work, to people or to programs, and ends with its exit status.
func (m memory) tell(streams streams, do func() (told, error)) error {
	var t told
	err := m.named()
	if err == nil {
		t, err = do()
	}
	if t.Steps == nil {
		t.Steps = []oneTold{}
	}
	if err != nil {
		t.ExitCode, t.Error = agentStatus(err)
		t.Detail = err.Error()
	}
	if t.Cut > 0 {
		fmt.Fprintf(streams.err, "einmal agent: %s: a record that was being written when its writer died has been cut off (%d bytes); its step goes on from what stands before it\n", m.Journal, t.Cut)
	}
	if m.JSON {
		if err := json.MarshalWrite(streams.out, t, json.Deterministic(true), jsontext.WithIndent("  ")); err != nil {
			return err
		}
		fmt.Fprintln(streams.out)
	} else if err := t.write(streams.out); err != nil {
		return err
	}
	return exit{t.ExitCode, err}
}

// named refuses a journal without a name, which an unset variable of a script leaves.
func (m memory) named() error {
	if m.Journal == "" {
		return fmt.Errorf("%w: the journal has no name: set EINMAL_AGENT_JOURNAL, or give --journal FILE", errCall)
	}
	return nil
}

func (t told) write(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, step := range t.Steps {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\trun %s\n", cmp.Or(step.Outcome, "open"), step.Step, step.Disposition, step.summary(), step.Run)
	}
	if err := table.Flush(); err != nil || t.short {
		return err
	}
	for _, step := range t.Steps {
		if step.ExitCode != 0 || t.whole {
			fmt.Fprintln(w)
			step.write(w)
		}
	}
	return nil
}

func (o oneTold) summary() string {
	if o.Response != nil && o.ExitCode == 0 { // what else was answered says less than why
		return fmt.Sprintf("%d %s", o.Response.Status, o.Response.Location)
	}
	if reason := []rune(o.Reason); len(reason) > mostReason {
		return string(reason[:mostReason]) + "…"
	}
	return o.Reason
}

// mostReason is how much of a reason stands in a step's line, which is to fit into a screen's; show has all of it.
const mostReason = 60

// write hands over: everything that somebody needs who has to decide.
func (o oneTold) write(w io.Writer) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	defer table.Flush()
	line := func(name, format string, args ...any) {
		fmt.Fprintf(table, "%s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	line("step", "%s of run %s: %s, effect %s", o.Step, o.Run, cmp.Or(o.Outcome, "open"), o.Effect)
	if o.InTheWay {
		line("first", "It is open, and nothing new of its run is begun before it is settled.")
	}
	if o.Reason != "" {
		line("why", "%s", o.Reason)
	}
	line("do", "%s", o.Advice)
	line("command", "%s %s%s %s", o.Command.Method, o.URL, o.Command.Path, o.Command.Body)
	line("key", "%s", o.Key)
	if op := o.Operation; op.ID != "" {
		line("operation", "%s %s %s %s", op.ID, op.State, op.ApprovalID, op.ReviewID)
	}
	for _, r := range o.Requests {
		line(string(r.Kind), "%s  %s", r.At.Format("2006-01-02T15:04:05.000Z07:00"), r.Seen)
	}
}
