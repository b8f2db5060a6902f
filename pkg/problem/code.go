package problem

// Code names one problem. A code is never renamed and never gets another meaning.
type Code string

// Effect is what an answer says about the effect of the operation it is about.
type Effect string

// None: nothing happened and nothing will. Applied: it happened. Unknown: it may have happened, or may still happen.
const (
	EffectNone    Effect = "none"
	EffectApplied Effect = "applied"
	EffectUnknown Effect = "unknown"
)

// Retry says with which idempotency key another attempt may be made.
type Retry string

// SameKey: the key is unused, or belongs to this very command: send it again. NewKey: this key has its final answer;
// another attempt is another operation. Never: no attempt can succeed.
const (
	RetrySameKey Retry = "same_key"
	RetryNewKey  Retry = "new_key"
	RetryNever   Retry = "never"
)

// NextAction is what to do now.
type NextAction string

// The actions, from least to most effort.
const (
	NextRetrySameKey  NextAction = "retry_same_key"
	NextPollOperation NextAction = "poll_operation"
	NextFixRequest    NextAction = "fix_request"
	NextNewOperation  NextAction = "new_operation"
	NextAskHuman      NextAction = "ask_human"
	NextStop          NextAction = "stop"
)

// The codes. What each means stands in the catalogue.
const (
	// The request.
	MalformedRequest     Code = "malformed-request"
	HeadersTooLarge      Code = "headers-too-large"
	Unauthenticated      Code = "unauthenticated"
	Forbidden            Code = "forbidden"
	NotFound             Code = "not-found"
	RouteNotFound        Code = "route-not-found"
	MethodNotAllowed     Code = "method-not-allowed"
	RateLimited          Code = "rate-limited"
	UnsupportedMediaType Code = "unsupported-media-type"
	BodyTooLarge         Code = "body-too-large"
	MalformedBody        Code = "malformed-body"
	ValidationFailed     Code = "validation-failed"

	// The key and its operation.
	IdempotencyKeyMissing     Code = "idempotency-key-missing"
	IdempotencyKeyInvalid     Code = "idempotency-key-invalid"
	IdempotencyKeyReused      Code = "idempotency-key-reused"
	IdempotencyKeyExpired     Code = "idempotency-key-expired"
	OperationInProgress       Code = "operation-in-progress"
	OperationNotFound         Code = "operation-not-found"
	OperationFinal            Code = "operation-final"
	OperationRunning          Code = "operation-running"
	OperationCanceled         Code = "operation-canceled"
	DeadlineExceeded          Code = "deadline-exceeded"
	AttemptsExhausted         Code = "attempts-exhausted"
	EffectRefused             Code = "effect-refused"
	FingerprintVersionUnknown Code = "fingerprint-version-unknown"
	TargetNotServed           Code = "target-not-served"

	// The service.
	InternalError    Code = "internal-error"
	StoreUnavailable Code = "store-unavailable"
	StoreRewound     Code = "store-rewound"

	// Tickets.
	TicketClosed    Code = "ticket-closed"
	VersionMismatch Code = "version-mismatch"

	// Payments.
	OrderFrozen              Code = "order-frozen"
	OrderMismatch            Code = "order-mismatch"
	OrderBusy                Code = "order-busy"
	OrderNotPayable          Code = "order-not-payable"
	PaymentBusy              Code = "payment-busy"
	PaymentNotCapturable     Code = "payment-not-capturable"
	PaymentNotCancelable     Code = "payment-not-cancelable"
	CaptureExceedsAuthorized Code = "capture-exceeds-authorized"
	RefundExceedsRemaining   Code = "refund-exceeds-remaining"
	PaymentDeclined          Code = "payment-declined"
	RefundDeclined           Code = "refund-declined"

	// Deployments.
	MutableReference   Code = "mutable-reference"
	InvalidDigest      Code = "invalid-digest"
	EnvironmentLocked  Code = "environment-locked"
	EnvironmentChanged Code = "environment-changed"
	NotLive            Code = "not-live"
	NoRollbackTarget   Code = "no-rollback-target"
	RolloutFailed      Code = "rollout-failed"

	// People.
	RequesterCannotApprove Code = "requester-cannot-approve"
	ApprovalDecided        Code = "approval-decided"
	ApprovalRejected       Code = "approval-rejected"
	ApprovalExpired        Code = "approval-expired"
	ApprovalStale          Code = "approval-stale"
	ReviewResolved         Code = "review-resolved"
)
