package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/google/uuid"
)

// Config is what an agent is given.
type Config struct {
	Run     string            // which piece of work this is
	Targets map[string]Target // by the names that steps use; "" is for steps that name none
	Token   string            // the bearer token, for every target; it is never journaled
	Budget  Budget            // of the run; what it does not say is as the journal has it, from whoever began the run

	// Progress is told what the agent waits for, nil: nobody is.
	Progress func(e *Entry, what string)
}

// Agent does steps, each as often as it takes and at most once. Its methods may be called by several goroutines, as by a runtime that dispatches a tool
// twice, and wait for each other: the second finds what the first has done.
type Agent struct {
	mu      sync.Mutex
	config  Config
	journal *Journal
	client  client
}

// ErrConfig means that an agent can't be as it is told to be.
var ErrConfig = errors.New("invalid configuration")

// New makes an agent with a journal, which stays the caller's to close.
func New(journal *Journal, config Config) (*Agent, error) {
	if !isName(config.Run) {
		return nil, fmt.Errorf("%w: the name of a run has 1 to %d visible ASCII characters, no spaces, such as nightly-42", ErrConfig, longestName)
	}
	if strings.ContainsFunc(config.Token, func(r rune) bool { return r <= ' ' || r > '~' }) { // it is not shown
		return nil, fmt.Errorf("%w: the token has a space, a line break or another character that no token has; was more than the token read from its file?", ErrConfig)
	}
	if wrong := config.Budget.violations("the budget of the run"); len(wrong) > 0 {
		return nil, fmt.Errorf("%w: %s", ErrConfig, wrong[0])
	}
	if config.Progress == nil {
		config.Progress = func(*Entry, string) {}
	}
	return &Agent{config: config, journal: journal, client: newClient(config.Token)}, nil
}

// Result is what became of a step.
type Result struct {
	Entry    *Entry
	Existing bool // the journal had it before
	InTheWay bool // it was not asked for: it is open, and nothing new is begun before it is settled
}

// Do does steps one after the other, and ends at the first that is not done. Before anything is sent, all of them are checked, and entries that
// an earlier process has left open in this run are settled; where one can't be, nothing new is begun. Other runs are not waited for: [Agent.Resume].
//
// The results are of the steps that were come to, or of what stands in their way. An error means that the rest was not tried: [ErrInvalid],
// [ErrStepChanged], [ErrTargetChanged], [ErrNotRefused], or that the journal can't be written.
func (a *Agent) Do(ctx context.Context, steps []Step) (results []Result, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	plan, err := a.plan(steps)
	if err != nil {
		return nil, err
	}
	if err := a.changeRunBudget(a.config.Run); err != nil {
		return nil, err
	}
	for _, p := range plan {
		if err := a.budget(p); err != nil {
			return nil, err
		}
	}
	if err := a.settleOpen(ctx, func(e *Entry) bool { return e.Run == a.config.Run && a.isCalled(e) }); err != nil {
		return nil, err
	}
	for _, p := range plan {
		e := a.entry(p.intention.Run, p.intention.Step) // an earlier step may be the same
		existing := e != nil
		if !existing {
			if standing := a.inTheWay(); standing != nil {
				return append(results, Result{Entry: standing, Existing: true, InTheWay: true}), nil
			}
			if err := a.failed(p); err != nil {
				return results, err
			}
			if e, err = a.begin(p.intention); err != nil {
				return results, err
			}
			if err := a.settle(ctx, e); err != nil {
				return results, err
			}
		}
		results = append(results, Result{Entry: e, Existing: existing})
		if e.End.Outcome.ExitCode() != 0 {
			return results, nil
		}
	}
	return results, nil
}

// Resume settles what is open: of one run, or, without a name, of all, wherever they were begun. It returns the entries that it has come to.
func (a *Agent) Resume(ctx context.Context, run string) ([]Result, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	meant := func(e *Entry) bool { return run == "" || e.Run == run }
	var results []Result
	for _, e := range a.journal.Entries() {
		if !e.Open() || !meant(e) {
			continue
		}
		results = append(results, Result{Entry: e, Existing: true})
		if err := a.changeRunBudget(e.Run); err != nil {
			return nil, err
		}
	}
	return results, a.settleOpen(ctx, meant)
}

// isCalled tells whether an entry's target is one of the agent's. Those of others are not sent its token unless somebody says Resume.
func (a *Agent) isCalled(e *Entry) bool {
	for _, target := range a.config.Targets {
		if target.URL == e.URL {
			return true
		}
	}
	return false
}

func (a *Agent) settleOpen(ctx context.Context, meant func(*Entry) bool) error {
	for _, e := range a.journal.Entries() {
		if !e.Open() || !meant(e) {
			continue
		}
		if err := a.settle(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// begin journals an intention with a key of its own. The key is on disk when it returns, and nothing was sent before.
func (a *Agent) begin(in Intention) (*Entry, error) {
	key, err := uuid.NewV7()
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	in.Key, in.RunBudget = key.String(), a.runBudget(in.Run)
	return a.journal.begin(in)
}

// changeRunBudget journals what is said now about a whole run, so that it holds for whoever goes on with it.
func (a *Agent) changeRunBudget(run string) error {
	entries := a.ofRun(run)
	if len(entries) == 0 {
		return nil // its first intention says it
	}
	last, b := entries[len(entries)-1], a.runBudget(run)
	if b.equal(last.RunBudget.or(runBudget)) {
		return nil
	}
	return a.journal.note(last, record{RunBudget: &b})
}

// budget gives an open entry what its step says now, which may be more than before: somebody has decided that it may go on.
func (a *Agent) budget(p planned) error {
	if p.entry == nil || p.budget == nil || !p.entry.Open() {
		return nil
	}
	if b := p.budget.or(p.entry.Budget); !b.equal(p.entry.Budget) {
		return a.journal.note(p.entry, record{Budget: &b})
	}
	return nil
}

// inTheWay is the first entry of the run that is not settled and may yet be, nil if there is none.
func (a *Agent) inTheWay() *Entry {
	for _, e := range a.journal.Entries() {
		if e.Run == a.config.Run && e.Open() && first(e) != HandOver {
			return e
		}
	}
	return nil
}
