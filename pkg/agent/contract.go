package agent

import "github.com/einmal/einmal/pkg/problem"

// Action is what to do next about an entry.
type Action string

const (
	Done         Action = "done"           // it has happened
	Stop         Action = "stop"           // it was refused for good: no retry until the task changes
	RetrySameKey Action = "retry_same_key" // send the same request once more
	LookUp       Action = "look_up"        // ask by key what became of it
	Poll         Action = "poll"           // ask for the operation until it ends
	HandOver     Action = "hand_over"      // a person decides
)

// Situation is what the agent knows beside the answer itself.
type Situation int

const (
	Sent       Situation = iota // the answer to an attempt, and no earlier attempt is in doubt
	InDoubt                     // the answer to an attempt, while an earlier one may still have had the effect
	Asked                       // the answer to a question, by key or by operation
	Confirming                  // the same, asked because an attempt was refused while an earlier one was in doubt
	Ended                       // how the operation of the key has ended: its stored answer
)

// Situations are all of them.
var Situations = []Situation{Sent, InDoubt, Asked, Confirming, Ended}

// Row is what to do about one reading, in each situation.
type Row [5]Action

// Rows that occur more than once. Their columns are Sent, InDoubt, Asked, Confirming, Ended. What can't be in a column, since no service answers so,
// is for a person.
var (
	// The request was turned away before its key was looked at. That says nothing of an earlier attempt, so the key is asked about first.
	turnedAway = Row{Stop, LookUp, HandOver, HandOver, HandOver}

	// It is not the request that is wrong but who sends it. Somebody has to mend that, and then the same key goes on.
	notLetIn = Row{HandOver, HandOver, HandOver, HandOver, HandOver}

	// Nothing was done for now; the same request may succeed later.
	later = Row{RetrySameKey, RetrySameKey, LookUp, LookUp, HandOver}

	// Nothing was done for now. As the end of an operation it is final.
	laterOrFinal = Row{RetrySameKey, RetrySameKey, LookUp, LookUp, Stop}

	// The business says no. That is the answer of this key, unless it came without saying so and something is in doubt.
	refused = Row{Stop, LookUp, HandOver, HandOver, Stop}

	// What was answered is not known.
	unknown = Row{LookUp, LookUp, LookUp, LookUp, HandOver}

	// The operation goes on, and is asked for until it has ended.
	open = Row{Poll, Poll, Poll, Poll, HandOver}
)

// Contract is the retry contract: everything that can be seen, and what to do about it. There is no default: a code that is not in it is the
// reading UnknownCode, which has a row of its own.
var Contract = map[Reading]Row{
	// No problem, and no answer.
	Finished:     {Done, Done, HandOver, HandOver, Done},
	Accepted:     open,
	NotConnected: later,
	NoAnswer:     unknown,
	Unreadable:   unknown,
	UnknownCode:  {LookUp, LookUp, LookUp, LookUp, Stop}, // an operation that ended with it has ended
	Interrupted:  unknown,

	// Is it the same command, begun otherwise, or another? The target compares: sent again, it is a replay or a conflict, and never a second effect.
	Foreign: {HandOver, HandOver, RetrySameKey, RetrySameKey, HandOver},

	// Whatever has become of it, the target has forgotten, and what it does with the key now is not known to be what it would have done then.
	Vanished: {HandOver, HandOver, HandOver, HandOver, HandOver},

	// An operation, as a look-up shows it. One that is final is read as its answer is.
	OperationIs("awaiting_approval"): open,
	OperationIs("queued"):            open,
	OperationIs("running"):           open,
	OperationIs("unknown"):           open, // a person may settle it while there is time
	OperationIs("succeeded"):         {HandOver, HandOver, HandOver, HandOver, Done},
	OperationIs("failed"):            {HandOver, HandOver, HandOver, HandOver, Stop},
	OperationIs("canceled"):          {HandOver, HandOver, HandOver, HandOver, Stop},

	// The request.
	Code(problem.MalformedRequest):     turnedAway,
	Code(problem.HeadersTooLarge):      turnedAway,
	Code(problem.Unauthenticated):      notLetIn,
	Code(problem.Forbidden):            notLetIn,
	Code(problem.NotFound):             {Stop, LookUp, LookUp, LookUp, HandOver}, // an operation that was seen and is gone: is its key known?
	Code(problem.RouteNotFound):        turnedAway,
	Code(problem.MethodNotAllowed):     turnedAway,
	Code(problem.RateLimited):          later,
	Code(problem.UnsupportedMediaType): turnedAway,
	Code(problem.BodyTooLarge):         turnedAway,
	Code(problem.MalformedBody):        turnedAway,
	Code(problem.ValidationFailed):     turnedAway,

	// The key and its operation.
	Code(problem.IdempotencyKeyMissing):     turnedAway,
	Code(problem.IdempotencyKeyInvalid):     turnedAway,
	Code(problem.IdempotencyKeyReused):      {Stop, Stop, Stop, Stop, Stop},                 // never another key: one of two commands is wrong
	Code(problem.IdempotencyKeyExpired):     {LookUp, LookUp, HandOver, HandOver, HandOver}, // its answer is gone, not how it ended
	Code(problem.OperationInProgress):       later,
	Code(problem.OperationNotFound):         {Stop, LookUp, RetrySameKey, Stop, HandOver}, // asked about: never seen, so safe to send
	Code(problem.OperationFinal):            refused,
	Code(problem.OperationRunning):          refused,
	Code(problem.OperationCanceled):         refused,
	Code(problem.DeadlineExceeded):          refused,
	Code(problem.AttemptsExhausted):         refused,
	Code(problem.EffectRefused):             refused,
	Code(problem.FingerprintVersionUnknown): later,
	Code(problem.TargetNotServed):           later,

	// The service.
	Code(problem.InternalError):    unknown,
	Code(problem.StoreUnavailable): later,
	Code(problem.StoreRewound):     later,

	// Tickets.
	Code(problem.TicketClosed):    refused,
	Code(problem.VersionMismatch): refused,

	// Payments.
	Code(problem.OrderFrozen):              refused,
	Code(problem.OrderMismatch):            refused,
	Code(problem.OrderBusy):                laterOrFinal,
	Code(problem.OrderNotPayable):          refused,
	Code(problem.PaymentBusy):              laterOrFinal,
	Code(problem.PaymentNotCapturable):     refused,
	Code(problem.PaymentNotCancelable):     refused,
	Code(problem.CaptureExceedsAuthorized): refused,
	Code(problem.RefundExceedsRemaining):   refused,
	Code(problem.PaymentDeclined):          refused,
	Code(problem.RefundDeclined):           refused,

	// Deployments.
	Code(problem.MutableReference):   turnedAway,
	Code(problem.InvalidDigest):      turnedAway,
	Code(problem.EnvironmentLocked):  laterOrFinal,
	Code(problem.EnvironmentChanged): refused,
	Code(problem.NotLive):            refused,
	Code(problem.NoRollbackTarget):   refused,
	Code(problem.RolloutFailed):      refused,

	// People.
	Code(problem.RequesterCannotApprove): refused,
	Code(problem.ApprovalDecided):        refused,
	Code(problem.ApprovalRejected):       refused,
	Code(problem.ApprovalExpired):        refused,
	Code(problem.ApprovalStale):          refused,
	Code(problem.ReviewResolved):         refused,

	// A target that has only keys, or nothing, is read by status alone.
	StatusSuccess:   {Done, Done, HandOver, HandOver, Done},
	StatusRefused:   {Stop, HandOver, HandOver, HandOver, HandOver}, // no word about an earlier attempt, and nobody to ask
	StatusNotLetIn:  notLetIn,
	StatusConflict:  later, // 409: the first request with this key is being worked on (draft-ietf-httpapi-idempotency-key-header)
	StatusLimited:   later,
	StatusFailed:    unknown,
	StatusNotFollow: unknown,
}
