package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/einmal/einmal/pkg/agent"
)

// agentCmd is the agent's side: a client that cannot forget. Its exit statuses are its own: 0 done or replayed, 1 it was called wrongly, 2
// refused, 3 unknown, 4 a person is needed.
type agentCmd struct {
	Do     agentDoCmd     `cmd:"" help:"Do the steps of a file, each once: what is open of its run is settled first, and the same steps again are answered from the journal."`
	Status agentStatusCmd `cmd:"" help:"Say how the steps of the journal stand, without asking anybody; the exit status is that of what stands worst."`
	Resume agentResumeCmd `cmd:"" help:"Settle what is open, of one run or of all: ask what became of it, and send again under the same key where that is safe."`
	List   agentListCmd   `cmd:"" help:"List the journal's entries."`
	Show   agentShowCmd   `cmd:"" help:"Show everything that was gathered about a step."`
}

// Help is what follows the first line of its help.
func (agentCmd) Help() string {
	return `A step of a run has one key, which is in the journal before the first byte leaves. Steps are JSON; einmal agent do --help says what is in one.

` + exitStatuses
}

const exitStatuses = `Exit statuses:

    0  done, now or before (list and show: it was printed)
    1  it was called wrongly, or a file can't be read: nothing was sent
    2  refused for good: it has not happened; a changed one is another step
    3  unknown: it may have happened; resume asks again
    4  a person is needed: an approval, a conflict, a changed step, a budget

do and resume end with that of the first step that is not done, status with the worst. Every one but 0 says what to do.`

// errCall means that the command line can't be right.
var errCall = errors.New("wrong call")

// usageStatus is how the agent says that it was called wrongly; 2 is a refusal.
const usageStatus = 1

// memory is which journal, and how it is told.
type memory struct {
	Journal string `env:"EINMAL_AGENT_JOURNAL" placeholder:"FILE" help:"The agent's memory, which there must be: a file on a local disk. do makes it when it is not there, and lost with it is what was begun."`
	JSON    bool   `name:"json" help:"Print one JSON document."`
}

// calling is whom the agent calls, and what that may take.
type calling struct {
	Token             string `env:"EINMAL_AGENT_TOKEN" placeholder:"TOKEN" help:"Bearer token. It is sent to every target, and stands in no journal. Give it by the environment."`
	Attempts          *int   `placeholder:"N" help:"Requests that may have an effect, for a whole run; default as was said last, else 100."`
	DeadlineSeconds   *int64 `placeholder:"N" help:"Time for a whole run, from its first step; default as was said last, else a day."`
	LongestWaitSecond *int64 `name:"longest-wait-seconds" placeholder:"N" help:"Wait before any one request; default as was said last, else an hour; a step that says nothing else has 60."`
	Cost              *int64 `placeholder:"N" help:"Sum of the costs that steps name, for a whole run; default as was said last, else no limit."`
}

func (c calling) budget() (b agent.Budget, err error) {
	b.Cost = c.Cost
	if c.Attempts != nil {
		b.Attempts = *c.Attempts
	}
	if c.DeadlineSeconds != nil {
		b.DeadlineSeconds = *c.DeadlineSeconds
	}
	if c.LongestWaitSecond != nil {
		b.LongestWaitSeconds = *c.LongestWaitSecond
	}
	if c.Attempts != nil && b.Attempts < 1 || c.DeadlineSeconds != nil && b.DeadlineSeconds < 1 || c.LongestWaitSecond != nil && b.LongestWaitSeconds < 1 {
		err = fmt.Errorf("%w: --attempts, --deadline-seconds and --longest-wait-seconds are 1 or more; leave out what is to stay as it was", errCall)
	}
	return b, err
}

// targets reads --target and --ability, each "VALUE" for steps that name no target, or "NAME=VALUE".
func targets(places, abilities []string) (map[string]agent.Target, error) {
	able := map[string]agent.Ability{}
	for _, text := range abilities {
		name, ability := named(text)
		able[name] = agent.Ability(ability)
	}
	all := map[string]agent.Target{}
	if len(places) == 0 {
		return nil, fmt.Errorf("%w: give --target URL, the service that the steps go to, such as --target http://127.0.0.1:8081", errCall)
	}
	for _, text := range places {
		name, place := named(text)
		ability, said := able[name]
		if !said {
			ability = agent.Operations
		}
		delete(able, name)
		target, err := agent.NewTarget(place, ability)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errCall, err)
		}
		if _, twice := all[name]; twice {
			return nil, fmt.Errorf("%w: two --target are called %q; write --target NAME=URL with names of their own, and NAME as the target of steps", errCall, name)
		}
		all[name] = target
	}
	for name := range able {
		return nil, fmt.Errorf("%w: --ability is about target %q, which no --target names", errCall, name)
	}
	return all, nil
}

// named splits "NAME=VALUE". The scheme of a URL stands before any = that belongs to it.
func named(text string) (name, value string) {
	name, value, found := strings.Cut(text, "=")
	if !found || strings.Contains(name, ":") {
		return "", text
	}
	return name, value
}

// agentStatus is the exit status for an error of the agent, and its name for programs.
func agentStatus(err error) (status int, name string) {
	for _, known := range []struct {
		err    error
		status int
		name   string
	}{
		{agent.ErrUnrecorded, 3, "unrecorded"},
		{agent.ErrStepChanged, 4, "step_changed"},
		{agent.ErrTargetChanged, 4, "target_changed"},
		{agent.ErrNotRefused, 4, "retry_of_open_step"},
		{agent.ErrDamaged, 4, "journal_damaged"},
		{agent.ErrOtherRelease, usageStatus, "journal_of_another_release"},
		{agent.ErrNotAJournal, usageStatus, "not_a_journal"},
		{agent.ErrLocked, usageStatus, "journal_locked"},
		{agent.ErrInvalid, usageStatus, "invalid"},
		{agent.ErrConfig, usageStatus, "invalid"},
		{errCall, usageStatus, "invalid"},
	} {
		if errors.Is(err, known.err) {
			return known.status, known.name
		}
	}
	return usageStatus, "failed"
}
