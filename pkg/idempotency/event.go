package idempotency

import "time"

// EventType says what happened to an operation, or to an attempt.
type EventType string

const (
	Attempted         EventType = "attempted"          // an attempt claimed the operation
	ApprovalRequested EventType = "approval_requested" // it waits for a person
	ApprovedEvent     EventType = "approved"           // a person has said yes
	RejectedEvent     EventType = "rejected"           // a person has said no
	QueuedEvent       EventType = "queued"             // accepted, its effect is to come
	Completed         EventType = "completed"          // it has its final answer
	Sent              EventType = "sent"               // an effect was taken: from here on a byte may have left
	AcceptedEvent     EventType = "accepted"           // the target has said that it goes on there
	UnknownEvent      EventType = "unknown"            // nobody can say yet whether its effect happened
	Reconciled        EventType = "reconciled"         // asking the target has shown what follows
	Resolved          EventType = "resolved"           // a person has resolved a review about it
	CanceledEvent     EventType = "canceled"           // withdrawn
	Replayed          EventType = "replayed"           // an attempt was answered from the stored response
	InProgress        EventType = "in_progress"        // an attempt met an operation that has no final answer
	Conflict          EventType = "conflict"           // an attempt brought another command under a used key
	Expired           EventType = "expired"            // an attempt came after the response's retention, or nobody has said yes in time
	Forgotten         EventType = "forgotten"          // its tombstone is gone; Reference is the id of what it made or changed
	Denied            EventType = "denied"             // an attempt was refused for now; nothing is stored under its key
)

// Event is one line of what happened. It holds no body and no secret.
type Event struct {
	Type        EventType
	At          time.Time
	Account     string
	Principal   string
	AgentRun    string
	RequestID   string
	OperationID string // empty when the attempt belongs to no stored operation
	AttemptID   string // att_…
	KeyHash     string // Key.Hash
	Fingerprint Fingerprint
	Route       string
	EffectKey   string // of events about an effect
	Reference   string // the target's name for the effect
	From, To    State
}

// becomes is the event of an operation reaching state s.
func (s State) becomes() EventType {
	switch s {
	case AwaitingApproval:
		return ApprovalRequested
	case Queued, Running:
		return QueuedEvent
	case Unknown:
		return UnknownEvent
	case Canceled:
		return CanceledEvent
	default:
		return Completed
	}
}
