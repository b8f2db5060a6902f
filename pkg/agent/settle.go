package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/einmal/einmal/pkg/problem"
)

// settle goes on with an entry until it is settled or handed over, which is in the journal when it returns. An error means that the journal can't be
// written, and then nothing more is sent.
func (a *Agent) settle(ctx context.Context, e *Entry) error {
	next, looked := first(e), false
	for tries := 0; ; tries++ {
		switch next {
		case Done, Stop:
			return a.end(e, settled(e, next))
		case HandOver:
			return a.end(e, handedOver(e, e.last().Seen.String()))
		}
		// The first question after a restart, or when a person has asked again, is free: it sends nothing, and may tell.
		looked = next != RetrySameKey
		if err := a.due(ctx, e, next, tries, tries == 0 && looked); err != nil {
			return a.end(e, handedOver(e, err.Error()))
		}
		var s Seen
		var err error
		if looked {
			s, err = a.look(ctx, e, next)
		} else {
			s, err = a.attempt(ctx, e)
		}
		if err != nil {
			return err
		}
		if s.response != nil {
			e.response = s.response
		}
		next = decide(e, s, looked)
	}
}

// first is what to do about an entry that was just begun, or that the journal has brought back.
func first(e *Entry) Action {
	switch {
	case len(e.Requests) == 0:
		return RetrySameKey
	case e.Operation().ID != "" && e.Ability == Operations:
		return Poll
	case e.InDoubt():
		return e.can(LookUp)
	}
	return e.can(RetrySameKey)
}

// decide asks the retry contract what to do about what was seen, in the situation that the entry is in.
func decide(e *Entry, s Seen, looked bool) Action {
	row, known := Contract[s.Reading]
	if !known { // another release has written the journal
		row = Contract[UnknownCode]
	}
	return e.can(row[situation(e, s, looked)])
}

func situation(e *Entry, s Seen, looked bool) Situation {
	switch {
	case s.final:
		return Ended
	case looked && e.toConfirm():
		return Confirming
	case looked:
		return Asked
	case slices.ContainsFunc(e.Requests[:len(e.Requests)-1], Request.inDoubt):
		return InDoubt
	}
	return Sent
}

// toConfirm tells whether the last attempt was refused while an earlier one was in doubt.
func (e *Entry) toConfirm() bool {
	attempts := e.Attempts()
	last := attempts[len(attempts)-1]
	return e.InDoubt() && !last.inDoubt() && Contract[last.Seen.Reading][Sent] == Stop
}

// can is what is left of an action at the entry's target, and by what the step has declared.
func (e *Entry) can(action Action) Action { return allowed[e.Retry][possible[e.Ability][action]] }

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
		if err := e.Budget.attempt(entry, cost); err != nil {
			return fmt.Errorf("of the intention, %w", err)
		}
		if err := a.config.Budget.attempt(run, cost); err != nil {
			return fmt.Errorf("of the run, %w", err)
		}
	}
	last := e.last()
	asked := time.Duration(last.Seen.RetryAfter) * time.Second
	asked = max(0, min(asked, time.Until(last.Ended.Add(asked)))) // no longer than asked for, whatever the clock does
	if err := e.Budget.wait(entry, asked); err != nil && (!free || asked > 0) {
		return fmt.Errorf("of the intention, %w", err)
	}
	if err := a.config.Budget.wait(run, asked); err != nil && (!free || asked > 0) {
		return fmt.Errorf("of the run, %w", err)
	}
	if tries == 0 && asked == 0 {
		return nil
	}
	pause := asked
	if next == Poll { // the target says how often it wants to be asked
		tries = min(tries, 1)
	}
	if tries > 0 {
		pause += min(backoff(tries), time.Duration(e.Budget.LongestWaitSeconds)*time.Second-asked)
	}
	a.config.Progress(e, fmt.Sprintf("%s; %s in %v", last.Seen, phrases[next], pause.Round(time.Millisecond)))
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return errInterrupted
	}
}

// phrases are what is about to happen, for a person who waits.
var phrases = map[Action]string{RetrySameKey: "sent again under the same key", LookUp: "looked up by its key", Poll: "asked for"}

var errInterrupted = errors.New("the agent was told to end")

// ErrUnrecorded means that a request was sent, and what came of it could not be journaled. The next agent asks.
var ErrUnrecorded = errors.New("what came of a request could not be journaled")

// attempt sends the entry's request once. It is in the journal before the first byte leaves.
func (a *Agent) attempt(ctx context.Context, e *Entry) (Seen, error) {
	if err := a.journal.note(e, record{Attempt: len(e.Attempts()) + 1}); err != nil {
		return Seen{}, err
	}
	ctx, cancel := context.WithDeadline(ctx, a.deadline(e))
	defer cancel()
	s := a.client.attempt(ctx, e)
	if err := a.journal.note(e, record{Answer: &s}); err != nil {
		return s, fmt.Errorf("%w: %w", ErrUnrecorded, err)
	}
	return s, nil
}

// look asks what has become of the entry's operation. What is as it was is not journaled again.
func (a *Agent) look(ctx context.Context, e *Entry, how Action) (s Seen, err error) {
	before := e.last()
	left := time.Until(a.deadline(e))
	if left > 0 { // else it is the one question that is free
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, left)
		defer cancel()
	}
	if how == Poll {
		s = a.client.poll(ctx, e, e.Operation().ID, min(heldFor, left-time.Second))
	} else {
		s = a.client.lookUp(ctx, e)
	}
	if before.Kind == LookRequest && same(s, before.Seen) {
		e.Requests[len(e.Requests)-1].Ended = time.Now()
		return s, nil
	}
	return s, a.journal.note(e, record{Look: &s})
}

func same(a, b Seen) bool {
	a.final, a.response, b.final, b.response = false, nil, false, nil
	return a == b
}

// deadline is when the time of the intention, or that of its run, is up.
func (a *Agent) deadline(e *Entry) time.Time {
	deadline := e.Budget.deadline(spentBy(e))
	if run := a.config.Budget.deadline(spentBy(a.ofRun(e.Run)...)); run.Before(deadline) {
		deadline = run
	}
	return deadline
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

// end journals how an entry was left, unless that is how it was left before.
func (a *Agent) end(e *Entry, end End) error {
	if e.End.Outcome == end.Outcome && e.End.Reason == end.Reason {
		return nil
	}
	return a.journal.note(e, record{End: &end})
}

// settled is the end of an entry about which there is no doubt.
func settled(e *Entry, how Action) End {
	last := e.last().Seen
	end := End{Outcome: Refused, Reason: last.String(), Response: e.response}
	switch {
	case last.Reading == Code(problem.IdempotencyKeyReused):
		end.Outcome = Conflict
	case how == Done && last.Outcome == "replayed":
		end.Outcome = Replayed
	case how == Done:
		end.Outcome = Executed
	}
	return end
}

// handedOver is the end of an entry that a person has to decide about: it may have happened, or it has not.
func handedOver(e *Entry, reason string) End {
	end := End{Outcome: NeedsPerson, Reason: reason}
	switch state := e.Operation().State; {
	case state == "awaiting_approval", state == "failed", state == "canceled":
	case state != "", e.InDoubt(): // an operation that is open may still happen
		end.Outcome = Unknown
	}
	return end
}
