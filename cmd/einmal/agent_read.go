package main

import (
	"fmt"
	"slices"

	"github.com/einmal/einmal/pkg/agent"
)

type agentStatusCmd struct {
	Of string `name:"run" placeholder:"NAME" help:"Only this run."`

	memory
}

func (s *agentStatusCmd) Run(streams streams) error {
	return s.tell(streams, func() (told, error) {
		t, err := s.entries(s.Of, func(*agent.Entry) bool { return true })
		for _, worst := range []int{3, 4, 2} { // in doubt, with a person, refused
			if slices.ContainsFunc(t.Steps, func(o oneTold) bool { return o.ExitCode == worst }) {
				t.ExitCode = worst
				break
			}
		}
		return t, err
	})
}

type agentListCmd struct {
	Of string `name:"run" placeholder:"NAME" help:"Only this run."`

	memory
}

func (l *agentListCmd) Run(streams streams) error {
	return l.tell(streams, func() (told, error) {
		t, err := l.entries(l.Of, func(*agent.Entry) bool { return true })
		t.short, t.ExitCode = true, 0 // it was listed
		return t, err
	})
}

type agentShowCmd struct {
	Step string `arg:"" name:"STEP" help:"Its name, or its key."`
	Of   string `name:"run" placeholder:"NAME" help:"Only of this run."`

	memory
}

func (s *agentShowCmd) Run(streams streams) error {
	return s.tell(streams, func() (told, error) {
		t, err := s.entries(s.Of, func(e *agent.Entry) bool { return e.Step == s.Step || e.Key == s.Step })
		if err == nil && len(t.Steps) == 0 {
			return t, fmt.Errorf("%w: the journal has no step %s; list says which it has", errCall, s.Step)
		}
		t.whole, t.ExitCode = true, 0
		return t, err
	})
}

// entries reads those of the journal that are meant, of a run or, without one, of all, beside whoever is writing it.
func (m memory) entries(run string, meant func(*agent.Entry) bool) (told, error) {
	entries, err := agent.Read(m.Journal)
	if err == nil {
		err = hasRun(entries, run)
	}
	var t told
	for _, e := range entries {
		if (run == "" || e.Run == run) && meant(e) {
			t.add(agent.Result{Entry: e, Existing: true})
		}
	}
	return t, err
}

// hasRun refuses a run that the journal does not have: its name is a slip, and nothing about it would look as if all were done.
func hasRun(entries []*agent.Entry, run string) error {
	if run != "" && !slices.ContainsFunc(entries, func(e *agent.Entry) bool { return e.Run == run }) {
		return fmt.Errorf("%w: the journal has no run %s; list says which it has", errCall, run)
	}
	return nil
}
