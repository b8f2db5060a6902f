package idempotency

import "slices"

// State is where an operation stands.
type State string

const (
	AwaitingApproval State = "awaiting_approval" // a person must say yes first
	Queued           State = "queued"            // accepted; its effect has not been sent, or may be sent again
	Running          State = "running"           // being sent, or going on at the target
	Succeeded        State = "succeeded"
	Failed           State = "failed"   // the world refused it
	Canceled         State = "canceled" // a person or a policy withdrew it
	Unknown          State = "unknown"  // the effect may have happened or may still happen
)

// claimed is the state before the claim: no row. It leads to the states in which an operation can be born.
const claimed State = ""

// transitions is the one table of what may follow what (docs/protocol.md, "States"). Terminal states lead nowhere.
var transitions = map[State][]State{
	claimed:          {Succeeded, Failed, Queued, AwaitingApproval},
	AwaitingApproval: {Queued, Canceled, Failed, Unknown},
	Queued:           {Running, Canceled, Failed, Unknown, Succeeded},
	Running:          {Succeeded, Failed, Canceled, Unknown, Queued},
	Unknown:          {Succeeded, Failed, Canceled, Queued, Running},
	Succeeded:        {},
	Failed:           {},
	Canceled:         {},
}

// Final reports whether the state is terminal: it never changes, and the operation has a final answer.
func (s State) Final() bool { return s == Succeeded || s == Failed || s == Canceled }

// CanBecome reports whether next may follow s.
func (s State) CanBecome(next State) bool { return slices.Contains(transitions[s], next) }

// Effect is what is known about the effect of an operation in state s: none, applied or unknown.
func (s State) Effect() string {
	switch s {
	case Succeeded:
		return "applied"
	case Running, Unknown:
		return "unknown"
	default:
		return "none"
	}
}
