package agent

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/einmal/einmal/pkg/problem"
)

// settle goes on with an entry until it is settled or handed over, which is in the journal when it returns. An error means that the journal can't be
// written, and then nothing more is sent; ErrUnrecorded: but something was.
func (a *Agent) settle(ctx context.Context, e *Entry) error {
	err := a.goOn(ctx, e)
	if err != nil && len(e.Attempts()) > 0 && !errors.Is(err, ErrUnrecorded) {
		return fmt.Errorf("%w: %w", ErrUnrecorded, err)
	}
	return err
}

func (a *Agent) goOn(ctx context.Context, e *Entry) error {
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
			end := handedOver(e, err.Error())
			errors.As(err, &end.Shortage)
			return a.end(e, end)
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
		next = decide(e, s, looked)
	}
}

// first is what to do about an entry that was just begun, or that the journal has brought back.
func first(e *Entry) Action {
	if len(e.Requests) == 0 {
		return RetrySameKey
	}
	last := e.last()
	next := decide(e, last.Seen, last.Kind == LookRequest)
	switch {
	case next == Done, next == Stop: // it was seen, and the agent died before it had said so
		return next
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
	case s.Final:
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

// ErrUnrecorded means that a request was sent, and what came of it could not be journaled. The next agent asks.
var ErrUnrecorded = errors.New("what came of a request could not be journaled: it may have happened; resume asks, when the journal can be written again")

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
	if op := e.Operation(); s.Reading == Code(problem.OperationNotFound) && op.State != "" {
		s = s.as(Vanished, "operation %s was seen as %s, and now its key is not known: the target's store was set back, or the token is another account's", op.ID, op.State)
	}
	if before.Kind == LookRequest && reflect.DeepEqual(s, before.Seen) {
		e.Requests[len(e.Requests)-1].Ended = time.Now()
		return s, nil
	}
	return s, a.journal.note(e, record{Look: &s})
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
	end := End{Outcome: Refused, Reason: last.String()}
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
	case state == "awaiting_approval" && e.last().Seen.Operation.State == state: // else somebody may have said yes since
	case state == "failed", state == "canceled":
	case state != "", e.InDoubt(): // an operation that is open may still happen
		end.Outcome = Unknown
	}
	return end
}
