package agent

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/einmal/einmal/pkg/problem"
)

// Intention is what one (run, step) names.
type Intention struct {
	Run     string  `json:"run"`
	Step    string  `json:"step"`
	Key     string  `json:"key"` // made once, for this target
	Command Command `json:"command"`
	URL     string  `json:"url"` // of the target; under another one nobody knows the key
	Ability Ability `json:"ability"`
	Retry   Retry   `json:"retry"`
	RetryOf string  `json:"retry_of,omitzero"` // the step that failed and is tried again on purpose
	Cost    int64   `json:"cost,omitzero"`
	Budget  Budget  `json:"budget"`

	RunBudget Budget `json:"run_budget,omitzero"` // of the whole run, as it was when this began or as somebody has changed it since; the newest entry's counts
}

// Outcome is what became of an entry.
type Outcome string

const (
	Executed    Outcome = "done"     // it has happened
	Replayed    Outcome = "replayed" // it had happened, and this is its stored answer
	Refused     Outcome = "refused"  // it has not happened, and the same will not be tried again
	Conflict    Outcome = "conflict" // the key names another command at the target: a person has to find out why
	NeedsPerson Outcome = "person"   // it has not happened, and a person decides whether it goes on
	Unknown     Outcome = "unknown"  // it may have happened; a person decides, and asking again may tell
)

// ExitCode is how a program tells outcomes apart.
func (o Outcome) ExitCode() int { return exitCodes[o] }

var exitCodes = map[Outcome]int{Executed: 0, Replayed: 0, Refused: 2, Unknown: 3, Conflict: 4, NeedsPerson: 4}

// Settled tells whether the outcome is final: nothing is sent or asked any more.
func (o Outcome) Settled() bool {
	return o == Executed || o == Replayed || o == Refused || o == Conflict
}

// End is how an entry was left: settled, or handed over.
type End struct {
	Outcome  Outcome   `json:"outcome"`
	Reason   string    `json:"reason"`
	Shortage *Shortage `json:"shortage,omitzero"` // if the reason is a budget
}

// Request is one that was sent about an entry, and what was seen of it.
type Request struct {
	Kind  RequestKind `json:"kind"`
	At    time.Time   `json:"at"`
	Ended time.Time   `json:"ended,omitzero"`
	Seen  Seen        `json:"seen"`
}

// RequestKind tells requests that may have the effect from those that only ask.
type RequestKind string

const (
	AttemptRequest RequestKind = "attempt" // in the journal before it leaves; Interrupted while that does not say how it ended
	LookRequest    RequestKind = "look"    // in the journal when it has shown something new
)

// Entry is an intention and everything that has happened to it.
type Entry struct {
	Intention
	Number   int64
	At       time.Time
	Requests []Request // in the order in which they were sent
	End      End       // the zero End: nobody has come to one since the last request
}

// Open tells whether something may still be done about the entry.
func (e *Entry) Open() bool { return !e.End.Outcome.Settled() }

// Operation is what was last seen of the entry's operation.
func (e *Entry) Operation() (op Operation) {
	for _, r := range e.Requests {
		if seen := r.Seen.Operation; seen.ID != "" && (seen.State != "" || seen.ID != op.ID) {
			op = seen
		}
	}
	return op
}

// Response is the final answer, nil if none was seen or is known any more.
func (e *Entry) Response() *Response { return e.last().Seen.Response }

// Attempts are the requests that may have had the effect.
func (e *Entry) Attempts() []Request {
	return slices.DeleteFunc(slices.Clone(e.Requests), func(r Request) bool { return r.Kind != AttemptRequest })
}

// InDoubt tells whether an attempt may have had, or may still have, an effect that nobody has told us of.
func (e *Entry) InDoubt() bool { return slices.ContainsFunc(e.Requests, Request.inDoubt) }

func (r Request) inDoubt() bool { return r.Kind == AttemptRequest && r.Seen.leavesDoubt() }

// leavesDoubt tells whether an attempt of which this was seen may have an effect that is not known. A refusal in the target's own words has none; a
// bare status that somebody on the way may have set says nothing, and 409 may mean that the first is being worked on, or done.
func (s Seen) leavesDoubt() bool {
	switch s.Reading {
	case NoAnswer, Unreadable, UnknownCode, Interrupted, Accepted, StatusFailed, StatusNotFollow, StatusConflict, StatusLimited, StatusNotLetIn:
		return true
	}
	return s.Effect == problem.EffectUnknown
}

// last is the last request, the zero Request if there was none.
func (e *Entry) last() Request {
	if len(e.Requests) == 0 {
		return Request{At: e.At}
	}
	return e.Requests[len(e.Requests)-1]
}

// add is what records come to.
func add(records []record) (entries []*Entry, err error) {
	for _, r := range records {
		if entries, err = fold(entries, r); err != nil {
			return nil, fmt.Errorf("%w: record %d: %w", ErrDamaged, r.Number, err)
		}
	}
	return entries, nil
}

// fold adds one record.
func fold(entries []*Entry, r record) ([]*Entry, error) {
	if r.Intention != nil {
		return append(entries, &Entry{Intention: *r.Intention, Number: r.Number, At: r.At}), nil
	}
	at, found := slices.BinarySearchFunc(entries, r.Entry, func(e *Entry, n int64) int { return cmp.Compare(e.Number, n) })
	if !found {
		return nil, fmt.Errorf("it belongs to record %d, which is no intention", r.Entry)
	}
	return entries, entries[at].take(r)
}

func (e *Entry) take(r record) error {
	switch {
	case r.Budget != nil:
		e.Budget = *r.Budget
	case r.RunBudget != nil:
		e.RunBudget = *r.RunBudget
	case r.Attempt != 0:
		if made := len(e.Attempts()); r.Attempt != made+1 {
			return fmt.Errorf("it is attempt %d after %d", r.Attempt, made)
		}
		e.Requests = append(e.Requests, Request{Kind: AttemptRequest, At: r.At, Seen: Seen{Reading: Interrupted}})
		e.End = End{}
	case r.Answer != nil:
		last := len(e.Requests) - 1
		if last < 0 || e.Requests[last].Kind != AttemptRequest || !e.Requests[last].Ended.IsZero() {
			return errors.New("it is an answer to no attempt")
		}
		e.Requests[last].Ended, e.Requests[last].Seen = r.At, *r.Answer
	case r.Look != nil:
		e.Requests = append(e.Requests, Request{Kind: LookRequest, At: r.At, Ended: r.At, Seen: *r.Look})
		e.End = End{}
	case r.End != nil:
		e.End = *r.End
	default:
		return errors.New("it says nothing")
	}
	return nil
}
