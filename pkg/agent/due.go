package agent

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// due waits until the next request is due, if the budgets allow both. What the target has asked for is kept even across a restart.
func (a *Agent) due(ctx context.Context, e *Entry, next Action, tries int, free bool) error {
	if err := ctx.Err(); err != nil {
		return errInterrupted
	}
	entry, run := spentBy(e), spentBy(a.ofRun(e.Run)...)
	if next == RetrySameKey {
		cost := e.Cost
		if entry.attempts > 0 {
			cost = 0 // its effect is the same, and is counted
		}
		if short := e.Budget.attempt(ofStep, entry, cost); short != nil {
			return short
		}
		if short := a.runBudget(e.Run).attempt(ofRun, run, cost); short != nil {
			return short
		}
	}
	last := e.last()
	asked := time.Duration(last.Seen.RetryAfter) * time.Second
	asked = max(0, min(asked, time.Until(last.Ended.Add(asked)))) // no longer than asked for, whatever the clock does
	if free && (asked == 0 || last.Seen.Operation.State != "") {  // how often it wants to be asked says nothing of somebody who asks anew
		return nil
	}
	if err := a.mayWait(e, entry, run, asked); err != nil || tries == 0 && asked == 0 {
		return err
	}
	pause := asked
	if next == Poll && last.Seen.RetryAfter > 0 { // the target says how often it wants to be asked
		tries = min(tries, 1)
	}
	if tries > 0 {
		longest := min(time.Duration(e.Budget.LongestWaitSeconds)*time.Second, time.Until(a.deadline(e)))
		pause += max(0, min(backoff(tries), longest-asked))
	}
	a.config.Progress(e, fmt.Sprintf("%s; %s in %v", waitsFor(e), phrases[next], pause.Round(time.Millisecond)))
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return a.mayWait(e, entry, run, 0) // the deadline may have come meanwhile
	case <-ctx.Done():
		return errInterrupted
	}
}

// waitsFor is what was seen last, and who has to do something about it.
func waitsFor(e *Entry) string {
	if op := e.Operation(); op.State == "awaiting_approval" && op.ApprovalID != "" {
		return fmt.Sprintf("%s; approval %s has to be decided", e.last().Seen, op.ApprovalID)
	}
	return e.last().Seen.String()
}

// mayWait says which budget does not allow a wait.
func (a *Agent) mayWait(e *Entry, entry, run spent, wait time.Duration) error {
	if short := e.Budget.wait(ofStep, entry, wait); short != nil {
		return short
	}
	if short := a.runBudget(e.Run).wait(ofRun, run, wait); short != nil {
		return short
	}
	return nil
}

// phrases are what is about to happen, for a person who waits.
var phrases = map[Action]string{RetrySameKey: "sent again under the same key", LookUp: "looked up by its key", Poll: "asked for"}

var errInterrupted = errors.New("the agent was told to end")

// deadline is when the time of the intention, or that of its run, is up.
func (a *Agent) deadline(e *Entry) time.Time {
	deadline := e.Budget.deadline(spentBy(e))
	if run := a.runBudget(e.Run).deadline(spentBy(a.ofRun(e.Run)...)); run.Before(deadline) {
		deadline = run
	}
	return deadline
}

// runBudget is what a whole run may take: as the agent was told, else as the journal has it, else as much as any.
func (a *Agent) runBudget(run string) Budget {
	b := a.config.Budget
	if entries := a.ofRun(run); len(entries) > 0 {
		b = b.or(entries[len(entries)-1].RunBudget)
	}
	return b.or(runBudget)
}

func (a *Agent) ofRun(run string) []*Entry {
	var all []*Entry
	for _, e := range a.journal.Entries() {
		if e.Run == run {
			all = append(all, e)
		}
	}
	return all
}
