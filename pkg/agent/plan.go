package agent

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

var (
	// ErrStepChanged means that a step of this run names another command already. Which of the two was meant is for a person to say.
	ErrStepChanged = errors.New("step_changed")

	// ErrTargetChanged means that a step of this run was begun at another place, where its key is known and here it is not.
	ErrTargetChanged = errors.New("target_changed")

	// ErrNotRefused means that a step is to be tried again, as another, that was not refused for good: it may have happened.
	ErrNotRefused = errors.New("retry_of_open_step")
)

// plan turns steps into entries, those that the journal has and those that are yet to begin. Nothing is written or sent; what is wrong with any
// step is an error about all of them.
func (a *Agent) plan(steps []Step) ([]planned, error) {
	var plan []planned
	var invalid []string
	for i, s := range steps {
		in, violations := s.intention(a.config.Run, a.config.Targets)
		for _, violation := range violations {
			invalid = append(invalid, fmt.Sprintf("step %d: %s", i+1, violation))
		}
		if len(violations) == 0 {
			plan = append(plan, planned{intention: in, entry: a.entry(in.Run, in.Step), budget: s.Budget})
		}
	}
	if len(invalid) > 0 {
		return nil, fmt.Errorf("%w: %s", ErrInvalid, strings.Join(invalid, "; "))
	}
	var wrong []error
	for i, p := range plan {
		if p.entry != nil {
			wrong = append(wrong, differs(p.intention, p.entry.Intention))
		}
		for _, earlier := range plan[:i] {
			if earlier.intention.Step == p.intention.Step {
				wrong = append(wrong, differs(p.intention, earlier.intention))
			}
		}
		wrong = append(wrong, a.predecessor(p))
	}
	return plan, errors.Join(wrong...)
}

// planned is a step on its way to become an entry.
type planned struct {
	intention Intention
	entry     *Entry  // the one that the journal has; nil: it is yet to begin
	budget    *Budget // as the step says it
}

// entry is the one that a step names, nil if there is none.
func (a *Agent) entry(run, step string) *Entry {
	for _, e := range a.journal.Entries() {
		if e.Run == run && e.Step == step {
			return e
		}
	}
	return nil
}

// differs says how a step is not the one that was begun under its name.
func differs(now, begun Intention) error {
	switch {
	case !now.Command.Equal(begun.Command):
		return fmt.Errorf("%w: step %s of run %s names another command already: it was %s, and now it is %s. Nothing was sent. "+
			"Find out which was meant: the first is what the step stays, and a deliberate second action is a step of another name",
			ErrStepChanged, begun.Step, begun.Run, begun.Command.short(), now.Command.short())
	case now.URL != begun.URL:
		return fmt.Errorf("%w: step %s of run %s was begun at %s, where its key is known, not at %s. Nothing was sent. "+
			"Give the first URL again; if that was wrong and the step was refused there, another step with retry_of %s goes to the right one, else a step of another run",
			ErrTargetChanged, begun.Step, begun.Run, begun.URL, now.URL, begun.Step)
	case now.Ability != begun.Ability, now.Retry != begun.Retry, now.RetryOf != begun.RetryOf:
		return fmt.Errorf("%w: step %s of run %s was begun with ability %s, retry %s and retry_of %q, and now has %s, %s and %q. Nothing was sent. "+
			"Give the first again; what is meant otherwise is a step of another name",
			ErrStepChanged, begun.Step, begun.Run, begun.Ability, begun.Retry, begun.RetryOf, now.Ability, now.Retry, now.RetryOf)
	}
	return nil
}

// predecessor checks what retry_of names: a step of this run, of which no other step is the second try already.
func (a *Agent) predecessor(p planned) error {
	if p.intention.RetryOf == "" || p.entry != nil {
		return nil
	}
	entries := a.journal.Entries()
	if !slices.ContainsFunc(entries, func(e *Entry) bool { return e.Run == a.config.Run && e.Step == p.intention.RetryOf }) {
		return fmt.Errorf("%w: step %s is a retry of %s, which run %s does not have", ErrInvalid, p.intention.Step, p.intention.RetryOf, a.config.Run)
	}
	for _, e := range entries {
		if e.Run == a.config.Run && e.RetryOf == p.intention.RetryOf {
			return fmt.Errorf("%w: %s has been tried again as %s; if that was refused too, name that one", ErrNotRefused, e.RetryOf, e.Step)
		}
	}
	return nil
}

// failed checks that what is tried again was refused for good.
func (a *Agent) failed(p planned) error {
	if p.intention.RetryOf == "" {
		return nil
	}
	if before := a.entry(a.config.Run, p.intention.RetryOf); before.End.Outcome != Refused {
		return fmt.Errorf("%w: step %s is a retry of %s, which was not refused for good (it is %s). Nothing was sent for it. "+
			"What may have happened has to be settled first (resume); what is meant as an action of its own says no retry_of", ErrNotRefused, p.intention.Step, before.Step, before.Standing())
	}
	return nil
}

// short is for messages.
func (c Command) short() string {
	const most = 200
	body := string(c.Body)
	if len(body) > most {
		body = strings.ToValidUTF8(body[:most], "") + "…"
	}
	return fmt.Sprintf("%s %s %s", c.Method, c.Path, body)
}
