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
		t, err := s.entries(func(e *agent.Entry) bool { return s.Of == "" || e.Run == s.Of })
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
		t, err := l.entries(func(e *agent.Entry) bool { return l.Of == "" || e.Run == l.Of })
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
		t, err := s.entries(func(e *agent.Entry) bool {
			return (s.Of == "" || e.Run == s.Of) && (e.Step == s.Step || e.Key == s.Step)
		})
		if err == nil && len(t.Steps) == 0 {
			return t, fmt.Errorf("%w: the journal has no step %s; list says which it has", agent.ErrInvalid, s.Step)
		}
		t.whole, t.ExitCode = true, 0
		return t, err
	})
}

// entries reads those of the journal that are meant, beside whoever is writing it.
func (m memory) entries(meant func(*agent.Entry) bool) (told, error) {
	entries, err := agent.Read(m.Journal)
	var t told
	for _, e := range entries {
		if meant(e) {
			t.add(agent.Result{Entry: e, Existing: true})
		}
	}
	return t, err
}
