package catalogue

import (
	"slices"
	"time"
)

// Entry is what is known about one operation type.
type Entry struct {
	Type string `json:"-"` // the member's name in the policy

	Owner  string `json:"owner"`  // the service that answers it
	Target string `json:"target"` // the system outside that is changed; "none": only this service's rows
	Risk   Risk   `json:"risk"`   // what a second execution would mean

	Effects         []string `json:"effects"`          // the kinds of effect it can have at the target; empty: none
	DuplicationCost string   `json:"duplication_cost"` // what it costs if all protection failed, in words

	DownstreamKey DownstreamKey `json:"downstream_key"` // how the target tells a repeated send from a new one
	Proof         string        `json:"proof"`          // what shows that it happened

	// How long one intention is worth trying. For a client that is when it stops, counted from when it first wants it; for the service,
	// when an effect is sent no more and a person is asked what became of it, counted from the claim (docs/decisions/0018).
	DeadlineSeconds int `json:"deadline_seconds"`

	// The rest of the budget of a client: how often it tries, how long it waits at most between two attempts, and after which failures
	// it tries at all, with the same key.
	MaxAttempts        int       `json:"max_attempts"`
	LongestWaitSeconds int       `json:"longest_wait_seconds"`
	RetryOn            []Failure `json:"retry_on"`

	MaxCost    string `json:"max_cost,omitempty"` // the most that one operation may cost; empty: it costs nothing
	Priority   string `json:"priority"`           // low, normal or high: who goes first when not all can
	Escalation string `json:"escalation"`         // who is asked when the budget is spent, and when nobody has resolved a review in time
	Approval   string `json:"approval"`           // when a person must agree before: never, always, or when …

	// Who decides what no machine can, and within what time. Only an operation with an effect comes to that.
	ReviewOwner      string `json:"review_owner,omitempty"`
	ReviewDueSeconds int    `json:"review_due_seconds,omitempty"`
}

// Deadline is DeadlineSeconds.
func (e Entry) Deadline() time.Duration { return time.Duration(e.DeadlineSeconds) * time.Second }

// LongestWait is LongestWaitSeconds, for whoever keeps to it: clients, and the outbox between its sends.
func (e Entry) LongestWait() time.Duration { return time.Duration(e.LongestWaitSeconds) * time.Second }

// Risk says what a second execution would mean.
type Risk string

// Repeatable: nothing. Compensable: work that can be undone. Irreversible: damage.
const (
	Repeatable   Risk = "repeatable"
	Compensable  Risk = "compensable"
	Irreversible Risk = "irreversible"
)

// DownstreamKey says how the target of an operation tells a repeated send from a new one.
type DownstreamKey string

// Sent: it honours a key of ours. Lookup: it can be asked by a reference of ours. None: it cannot, or there is no target.
const (
	KeySent   DownstreamKey = "sent"
	KeyLookup DownstreamKey = "lookup"
	KeyNone   DownstreamKey = "none"
)

// Failure is a family of failures that a client treats alike.
type Failure string

// The families after which the same request with the same key is right.
const (
	NoAnswer    Failure = "no_answer"    // time-out, reset, refused connection, an answer that is cut off
	InProgress  Failure = "in_progress"  // 409 operation-in-progress, or a transient refusal
	RateLimited Failure = "rate_limited" // 429
	Unavailable Failure = "unavailable"  // 503
	Internal    Failure = "internal"     // 500, and what a proxy makes of one
)

// Lookup returns the entry of an operation type.
func Lookup(operation string) (Entry, bool) {
	i := slices.IndexFunc(entries, func(e Entry) bool { return e.Type == operation })
	if i < 0 {
		return Entry{}, false
	}
	return entries[i], true
}

// All returns every entry, in the order of the services.
func All() []Entry {
	return slices.Clone(entries)
}

// Of returns the entries that a service answers: its own and those of every service.
func Of(owner string) []Entry {
	return slices.DeleteFunc(All(), func(e Entry) bool { return e.Owner != owner && e.Owner != everyone })
}

// HasPriority reports whether effects of an operation type go before others.
func HasPriority(operation string) bool {
	e, _ := Lookup(operation)
	return e.Priority == "high"
}
