package problem

import "slices"

// Entry is one row of the catalogue.
type Entry struct {
	Code              Code
	Status            int
	Title             string // the same for every occurrence
	Effect            Effect
	Retry             Retry
	NextAction        NextAction
	RetryAfterSeconds int    // a default where waiting helps; 0: none
	Advice            string // for a reader of the page
}

// Times to wait, in seconds. They are defaults: who knows better sets another.
const (
	waitBrief    = 1  // the other one is a transaction: it ends within the wait budget
	waitProvider = 5  // the other one waits for a call to the outside
	waitRollout  = 15 // the other one is a rollout or a release of this service
	waitPerson   = 60 // somebody has to act first
)

// entries is the catalogue: the one place where code, status and advice meet. Columns: code, status, title; effect,
// retry, next action, wait; advice.
var entries = []Entry{
	// The request. None of these uses the key up.
	{
		MalformedRequest, 400, "Malformed request", EffectNone, RetrySameKey, NextFixRequest, 0,
		"The bytes that arrived are no HTTP/1.1 request: a control character in a header such as Idempotency-Key, a missing Host, a Transfer-Encoding that is not known. Nothing else of it was looked at.",
	},
	{
		HeadersTooLarge, 431, "Headers too large", EffectNone, RetrySameKey, NextFixRequest, 0,
		"All headers together may have up to 64 KiB, a key 255 characters. Nothing else of the request was looked at.",
	},
	{
		Unauthenticated, 401, "No valid credentials", EffectNone, RetrySameKey, NextFixRequest, 0,
		"Send an Authorization header with a bearer token that this service knows. The key was not looked at.",
	},
	{
		Forbidden, 403, "Not allowed", EffectNone, RetrySameKey, NextAskHuman, 0,
		"You are known, but none of your roles may do this. Ask an operator of your account; the key was not looked at.",
	},
	{
		NotFound, 404, "No such resource", EffectNone, RetrySameKey, NextFixRequest, 0,
		"Nothing in your account has this id. What belongs to other accounts does not exist for you.",
	},
	{
		RouteNotFound, 404, "No such route", EffectNone, RetrySameKey, NextFixRequest, 0,
		"This service has nothing at this path. Its routes are listed at /openapi.json.",
	},
	{
		MethodNotAllowed, 405, "Method not allowed", EffectNone, RetrySameKey, NextFixRequest, 0,
		"The path exists, but not for this method. The Allow header lists those it answers.",
	},
	{
		RateLimited, 429, "Too many requests", EffectNone, RetrySameKey, NextRetrySameKey, waitBrief,
		"Your account sends faster than its limit. Wait as long as Retry-After says and send the same request with the same key.",
	},
	{
		UnsupportedMediaType, 415, "Unsupported media type", EffectNone, RetrySameKey, NextFixRequest, 0,
		"Send the body as application/json, without a Content-Encoding.",
	},
	{
		BodyTooLarge, 413, "Body too large", EffectNone, RetrySameKey, NextFixRequest, 0,
		"A body may have up to 1 MiB.",
	},
	{
		MalformedBody, 400, "Malformed body", EffectNone, RetrySameKey, NextFixRequest, 0,
		"The body is not one JSON object that reads the same for everybody: check its syntax, member names that occur twice, invalid UTF-8, lone surrogates, U+0000 and anything after the closing brace.",
	},
	{
		ValidationFailed, 422, "Invalid request", EffectNone, RetrySameKey, NextFixRequest, 0,
		"The body is well formed, but members are unknown, missing, null, of another type or out of range; or a parameter of the query is. The member errors lists all of them, each with a JSON pointer, or ?name for a parameter.",
	},

	// The key and its operation.
	{
		IdempotencyKeyMissing, 400, "Idempotency key missing", EffectNone, RetryNewKey, NextFixRequest, 0,
		"Every write needs an Idempotency-Key header. Choose the key before the first attempt, keep it, and send it with every attempt of the same intention. A UUIDv7 is a good key.",
	},
	{
		IdempotencyKeyInvalid, 400, "Idempotency key invalid", EffectNone, RetryNewKey, NextFixRequest, 0,
		"A key is one header line of 1 to 255 visible ASCII characters, bare or as a quoted structured-field string. Keys beginning with mirror:, am: or psp: are made by the service itself.",
	},
	{
		IdempotencyKeyReused, 422, "Idempotency key used for another command", EffectNone, RetryNever, NextStop, 0,
		"This key belongs to a different command: another body, method, path or version of it. Nothing was done. Do not simply choose a new key: a program that changes a command between attempts has a defect, and a new key could do the work a second time. Find out which of the two commands was meant.",
	},
	{
		IdempotencyKeyExpired, 410, "Idempotency key expired", EffectUnknown, RetryNever, NextAskHuman, 0,
		"The operation of this key ended so long ago that its answer is no longer kept. It is not run again. operation_id and operation_state, where present, say how it ended; otherwise look at the resource itself.",
	},
	{
		OperationInProgress, 409, "Operation in progress", EffectUnknown, RetrySameKey, NextRetrySameKey, waitBrief,
		"An earlier attempt with this key is being worked on at this moment. Wait as long as Retry-After says and send the same request with the same key: you receive its answer.",
	},
	{
		OperationNotFound, 404, "No such operation", EffectNone, RetrySameKey, NextRetrySameKey, 0,
		"No operation of your account has this key: it was never used, and sending your command with it is safe.",
	},
	{
		OperationFinal, 409, "Operation already final", EffectNone, RetryNever, NextStop, 0,
		"The operation has ended, so it can neither be canceled nor reconciled. Read it to see how.",
	},
	{
		OperationRunning, 409, "Operation is running", EffectNone, RetryNewKey, NextPollOperation, 0,
		"The operation may be having its effect, or its target is being asked about it at this moment. A cancel: the target offers no way to stop it; follow it until it ends. A decision of a person: it is too early; wait until the operation is unknown.",
	},
	{
		OperationCanceled, 409, "Operation canceled", EffectNone, RetryNever, NextStop, 0,
		"A person or a policy withdrew the operation. Either nothing had been sent, or the target confirmed that it stopped.",
	},
	{
		DeadlineExceeded, 409, "Deadline exceeded", EffectNone, RetryNewKey, NextNewOperation, 0,
		"The operation's deadline passed before anything was sent, so nothing happened. If it is still wanted, it is a new operation with a new key.",
	},
	{
		AttemptsExhausted, 409, "Attempts exhausted", EffectNone, RetryNewKey, NextAskHuman, 0,
		"Every send was proven to have had no effect, and no more are allowed. Find out why the target does not answer before starting a new operation.",
	},
	{
		EffectRefused, 409, "Refused by the target", EffectNone, RetryNewKey, NextAskHuman, 0,
		"The target system refused the effect for a reason that repeating does not change. A new operation makes sense once that reason is gone.",
	},
	{
		FingerprintVersionUnknown, 503, "Fingerprint version unknown", EffectUnknown, RetrySameKey, NextRetrySameKey, waitRollout,
		"The operation of this key was stored by a newer release than the one that answered, which therefore cannot compare the commands. It happens during a rollout; the same request succeeds when the release is everywhere.",
	},
	{
		TargetNotServed, 503, "Target not served", EffectNone, RetrySameKey, NextRetrySameKey, waitRollout,
		"The process that answered has no connection configured to the target of this operation's effect, and ends nothing there. During a rollout another process has one; else an operator has to configure it again. Nothing was done; the same request with the same key works then.",
	},

	// The service.
	{
		InternalError, 500, "Internal error", EffectUnknown, RetrySameKey, NextRetrySameKey, 0,
		"Something failed that nobody foresaw; it is in the service's log under the request id. The same request with the same key is safe: if the work was done, you receive its answer. If it keeps failing, tell an operator the request id.",
	},
	{
		StoreUnavailable, 503, "Store unavailable", EffectNone, RetrySameKey, NextRetrySameKey, waitBrief,
		"The service cannot reach its database or has no capacity left, and it does nothing unprotected. Where effect is unknown, the answer to a commit was lost. Either way the same request with the same key is right.",
	},
	{
		StoreRewound, 503, "Store rewound", EffectUnknown, RetrySameKey, NextRetrySameKey, waitPerson,
		"The database is older than what this service has already sealed, as after a restore from a backup. Nothing is written until an operator has accepted that. Keep the key.",
	},

	// Tickets.
	{
		TicketClosed, 409, "Ticket closed", EffectNone, RetryNewKey, NextNewOperation, 0,
		"A closed ticket can only be opened, and only by a command with expected_version. Read the ticket, decide, and send that as a new operation.",
	},
	{
		VersionMismatch, 409, "Version mismatch", EffectNone, RetryNewKey, NextNewOperation, 0,
		"Somebody changed the resource since you read it. Read it again, decide again, and send a new operation with the version you saw.",
	},

	// Payments.
	{
		OrderFrozen, 409, "Order frozen", EffectNone, RetryNever, NextStop, 0,
		"A payment refers to this order, so its content cannot change any more. Sending the content it has is fine; anything else is another order.",
	},
	{
		OrderMismatch, 409, "Payment does not match its order", EffectNone, RetryNewKey, NextFixRequest, 0,
		"Amount and currency of a payment must be those of its order. Read the order and send what it says as a new operation.",
	},
	{
		OrderBusy, 409, "Order has a live payment", EffectNone, RetrySameKey, NextRetrySameKey, waitProvider,
		"Another payment of this order has not ended; one whose outcome is unknown counts as live. The same request may succeed once that payment failed or was canceled.",
	},
	{
		OrderNotPayable, 409, "Order already paid", EffectNone, RetryNever, NextStop, 0,
		"The order is paid. A refund does not make it payable again.",
	},
	{
		PaymentBusy, 409, "Payment is being changed", EffectNone, RetrySameKey, NextRetrySameKey, waitProvider,
		"Another capture or cancel of this payment has not ended. The same request may be tried again after it.",
	},
	{
		PaymentNotCapturable, 409, "Payment cannot be captured", EffectNone, RetryNever, NextStop, 0,
		"A payment is captured once, and only while it is authorized. Read it to see what it is now.",
	},
	{
		PaymentNotCancelable, 409, "Payment cannot be canceled", EffectNone, RetryNever, NextStop, 0,
		"Only an authorized payment that was not captured can be canceled; a captured one is refunded.",
	},
	{
		CaptureExceedsAuthorized, 409, "Capture exceeds the authorized amount", EffectNone, RetryNewKey, NextFixRequest, 0,
		"At most the authorized amount can be captured. Send a smaller amount as a new operation.",
	},
	{
		RefundExceedsRemaining, 409, "Refund exceeds what remains", EffectNone, RetryNewKey, NextFixRequest, 0,
		"All refunds of a payment together, those in progress or unknown included, cannot exceed what was captured. The problem says how much remains.",
	},
	{
		PaymentDeclined, 402, "Payment declined", EffectNone, RetryNewKey, NextAskHuman, 0,
		"The payment provider declined, and no money moved. Repeating the same payment does not change that; let a person decide how to pay.",
	},
	{
		RefundDeclined, 402, "Refund declined", EffectNone, RetryNewKey, NextAskHuman, 0,
		"The payment provider declined the refund, and no money moved. Let a person decide what to do.",
	},

	// Deployments.
	{
		MutableReference, 422, "Mutable artifact reference", EffectNone, RetrySameKey, NextFixRequest, 0,
		"A branch, a tag or latest can point to something else tomorrow. Name the artifact by its digest; the detail says how to get it.",
	},
	{
		InvalidDigest, 422, "Invalid digest", EffectNone, RetrySameKey, NextFixRequest, 0,
		"A digest is sha256: with 64 or sha512: with 128 lower-case hexadecimal digits; a commit has 40 or 64.",
	},
	{
		EnvironmentLocked, 409, "Environment locked", EffectNone, RetrySameKey, NextRetrySameKey, waitRollout,
		"Another deployment holds the environment. The same request may be tried later, or wait its turn with when_locked: queue. As the failure of an operation (the environment was locked when a person approved) it is final: then start a new operation.",
	},
	{
		EnvironmentChanged, 409, "Environment changed", EffectNone, RetryNewKey, NextNewOperation, 0,
		"The environment is not at the version this deployment expected. Read it, decide again, and deploy as a new operation.",
	},
	{
		NotLive, 409, "Not the live release", EffectNone, RetryNewKey, NextFixRequest, 0,
		"Only the release that is live can be rolled back. Read the environment to see which one that is.",
	},
	{
		NoRollbackTarget, 409, "Nothing to roll back to", EffectNone, RetryNewKey, NextFixRequest, 0,
		"No earlier release of this service succeeded there, or the one named in to did not. Name one that did.",
	},
	{
		RolloutFailed, 409, "Rollout failed", EffectNone, RetryNewKey, NextAskHuman, 0,
		"The cluster tried the release and reported that it failed; the detail says what runs now. Nothing is rolled back by itself.",
	},

	// People.
	{
		RequesterCannotApprove, 403, "Requester cannot approve", EffectNone, RetryNever, NextAskHuman, 0,
		"Whoever asked for an operation cannot approve it. Another person must decide.",
	},
	{
		ApprovalDecided, 409, "Approval already decided", EffectNone, RetryNever, NextStop, 0,
		"Somebody has decided before. Read the approval to see who and how.",
	},
	{
		ApprovalRejected, 409, "Approval rejected", EffectNone, RetryNever, NextAskHuman, 0,
		"A person said no, so nothing was done. Talk to them; asking again with a new key is not the way.",
	},
	{
		ApprovalExpired, 409, "Approval expired", EffectNone, RetryNewKey, NextNewOperation, 0,
		"Nobody decided in time, or the approved operation was not sent in time; nothing was done. If it is still wanted, ask again with a new operation.",
	},
	{
		ApprovalStale, 409, "Approval stale", EffectNone, RetryNewKey, NextNewOperation, 0,
		"What was to be approved is not what is there now: the fingerprint differs, or the world changed since the question was asked. Look again; the changed intention is a new operation and a new question.",
	},
	{
		ReviewResolved, 409, "Review already resolved", EffectNone, RetryNever, NextStop, 0,
		"Somebody has resolved this review before. Read it to see how.",
	},
}

var byCode = func() map[Code]Entry {
	m := make(map[Code]Entry, len(entries))
	for _, e := range entries {
		m[e.Code] = e
	}
	return m
}()

// Lookup returns the catalogue's entry for code.
func Lookup(code Code) (Entry, bool) {
	e, ok := byCode[code]
	return e, ok
}

// All returns the catalogue, in its own order.
func All() []Entry {
	return slices.Clone(entries)
}
