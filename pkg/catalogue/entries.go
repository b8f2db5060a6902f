package catalogue

// The operation types. They are stored with every operation and never renamed.
const (
	TicketCreate       = "ticket.create"
	TicketComment      = "ticket.comment"
	TicketSetStatus    = "ticket.set_status"
	TicketMirror       = "ticket.mirror"
	OrderPut           = "order.put"
	PaymentCreate      = "payment.create"
	PaymentCapture     = "payment.capture"
	PaymentCancel      = "payment.cancel"
	RefundCreate       = "refund.create"
	DeploymentCreate   = "deployment.create"
	DeploymentCancel   = "deployment.cancel"
	DeploymentRollback = "deployment.rollback"
	EnvironmentPut     = "environment.put"
	OperationCancel    = "operation.cancel"
	OperationReconcile = "operation.reconcile"
	ApprovalDecide     = "approval.decide"
	ReviewResolve      = "review.resolve"
)

// whenLarge is the approval of what asks a person from an amount on that is a setting.
const whenLarge = "when the amount is {threshold} or more, in major units of its currency"

// anyFailure is every failure after which repeating is right. Since each attempt carries the same key it is right for all
// of our types; a type that lists fewer has a reason beside it.
var anyFailure = []Failure{NoAnswer, InProgress, RateLimited, Unavailable, Internal}

var entries = []Entry{
	{
		Type:            TicketCreate,
		Owner:           "tickets",
		Target:          "none",
		Risk:            Compensable,
		Effects:         []string{},
		DuplicationCost: "somebody works on an incident twice, until one of the two tickets is closed",
		DownstreamKey:   KeyNone,
		Proof:           "the ticket, committed in one transaction with its operation",
		// A report of an incident is worth an hour of trying: long enough for an outage of the service, after which the
		// client's operators know of the incident by other ways. 20 attempts that back off to five minutes fill that hour.
		DeadlineSeconds:    3600,
		MaxAttempts:        20,
		LongestWaitSeconds: 300,
		RetryOn:            anyFailure,
		Priority:           "normal",
		Escalation:         "an operator of the account",
		Approval:           "never",
	},
	ofTicket(TicketComment, Compensable, "everybody who follows the ticket reads the same twice, and an agent may act on it twice",
		"the comment, committed in one transaction with its operation and the ticket's count"),
	ofTicket(TicketSetStatus, Repeatable, "nothing by itself; a late repeat would undo what somebody decided since",
		"the ticket's status and version, committed in one transaction with the operation"),
	{
		Type:            TicketMirror,
		Owner:           "tickets",
		Target:          "desk",
		Risk:            Compensable,
		Effects:         []string{"ticket"},
		DuplicationCost: "the desk has the incident twice, and two people answer it",
		DownstreamKey:   KeySent,
		Proof:           "the desk's reference, from its answer, a look-up by effect key, or a close",
		// The service sends it by itself; a day covers an outage of the desk and the night after it. So many sends, half an hour apart in the
		// end, last as long.
		DeadlineSeconds:    86400,
		MaxAttempts:        70,
		LongestWaitSeconds: 1800,
		RetryOn:            []Failure{NoAnswer, RateLimited, Unavailable, Internal},
		Priority:           "normal",
		Escalation:         "an operator of the account",
		Approval:           "never",
		ReviewOwner:        byOperator,
		ReviewDueSeconds:   8 * 3600, // a working day: the ticket itself is there, and is worked on
	},
	{
		Type:            OrderPut,
		Owner:           "payments",
		Target:          "none",
		Risk:            Repeatable,
		Effects:         []string{},
		DuplicationCost: "nothing: the order says the same twice",
		DownstreamKey:   KeyNone,
		Proof:           "the order, committed in one transaction with its operation",
		// Whoever is about to pay waits for it.
		DeadlineSeconds:    300,
		MaxAttempts:        10,
		LongestWaitSeconds: 30,
		RetryOn:            anyFailure,
		Priority:           "normal",
		Escalation:         "an operator of the account",
		Approval:           "never",
	},
	money(PaymentCreate, "authorize", "a customer's money is held twice, and may be taken twice; a refund does not undo that it was gone",
		"the provider's payment, from its answer, a look-up by reference, or a close", "the amount of the order", whenLarge),
	money(PaymentCapture, "capture", "a customer pays twice; a refund does not undo that it was gone",
		"the provider's payment, which says how much was captured", "the amount that was authorized", "never"),
	money(PaymentCancel, "void", "nothing: what is void can't be made void again, but a hold that should have stayed is gone",
		"the provider's payment, which is canceled", "", "never"),
	money(RefundCreate, "refund", "money is paid out twice, and nobody has to give it back",
		"the provider's refund, from its answer or a look-up by effect key", "what was captured and not yet refunded",
		"when the payment has another refund that has neither failed nor been canceled"),
	rollout(DeploymentCreate, "code that nobody has approved runs, or a newer release is gone", "the cluster's rollout of exactly this artifact, which has ended",
		"when the environment requires it"),
	{
		Type:            DeploymentCancel,
		Owner:           "deployments",
		Target:          "cluster",
		Risk:            Compensable,
		Effects:         []string{"stop"},
		DuplicationCost: "nothing: what is broken off can't be broken off again",
		DownstreamKey:   KeySent,
		Proof:           "the cluster's rollout, which was broken off, and what ran before it runs",
		// Somebody watches it. What can't be broken off within some minutes has mostly ended.
		DeadlineSeconds:    900,
		MaxAttempts:        30,
		LongestWaitSeconds: 30,
		RetryOn:            anyFailure,
		Priority:           "high",
		Escalation:         "an operator of the account",
		Approval:           "never",
		ReviewOwner:        byOperator,
		ReviewDueSeconds:   lockedFor,
	},
	rollout(DeploymentRollback, "a release that was taken back on purpose runs again", "the cluster's rollout of exactly the earlier artifact, which has ended",
		"always"),
	{
		Type:            EnvironmentPut,
		Owner:           "deployments",
		Target:          "none",
		Risk:            Repeatable,
		Effects:         []string{},
		DuplicationCost: "nothing: the environment says the same twice",
		DownstreamKey:   KeyNone,
		Proof:           "the environment, committed in one transaction with its operation",
		// An operator waits for it.
		DeadlineSeconds:    300,
		MaxAttempts:        10,
		LongestWaitSeconds: 30,
		RetryOn:            anyFailure,
		Priority:           "normal",
		Escalation:         "an operator of the account",
		Approval:           "never",
	},
	local(OperationCancel, "the cancelation asked for twice", "the state of the operation"),
	local(OperationReconcile, "the target asked once more", "the attempts of the operation"),
	local(ApprovalDecide, "the same decision noted twice", "the approval, with who has decided it"),
	local(ReviewResolve, "the same decision noted twice", "the review, with who resolved it and what was seen"),
}

// ofTicket is an entry of a write about a ticket that is finished within its claim.
func ofTicket(operation string, risk Risk, duplicationCost, proof string) Entry {
	return Entry{
		Type: operation, Owner: "tickets", Target: "none", Risk: risk, Effects: []string{}, DuplicationCost: duplicationCost,
		DownstreamKey: KeyNone, Proof: proof,
		// As for the creation: what is said about an incident is worth an outage of the service.
		DeadlineSeconds: 3600, MaxAttempts: 20, LongestWaitSeconds: 300, RetryOn: anyFailure,
		Priority: "normal", Escalation: "an operator of the account", Approval: "never",
	}
}

// money is an entry of a write that moves a customer's money, or the hold on it.
func money(operation, effect, duplicationCost, proof, maxCost, approval string) Entry {
	return Entry{
		Type: operation, Owner: "payments", Target: "psp", Risk: Irreversible, Effects: []string{effect}, DuplicationCost: duplicationCost,
		DownstreamKey: KeySent, Proof: proof,
		// An hour covers an outage of a provider; what is wanted after that should be wanted again by somebody. Twenty sends with
		// pauses that double up to half a minute fill the first minutes of it, which is where most outages end.
		DeadlineSeconds: 3600, MaxAttempts: 20, LongestWaitSeconds: 30, RetryOn: anyFailure,
		MaxCost: maxCost, Priority: "normal", Escalation: "an operator of the account", Approval: approval,
		// Half a working day: until then a customer's order is busy, and their money may be held.
		ReviewOwner: byOperator, ReviewDueSeconds: 4 * 3600,
	}
}

// rollout is an entry of a write that changes what runs in an environment.
func rollout(operation, duplicationCost, proof, approval string) Entry {
	return Entry{
		Type: operation, Owner: "deployments", Target: "cluster", Risk: Irreversible, Effects: []string{"rollout"}, DuplicationCost: duplicationCost,
		DownstreamKey: KeySent, Proof: proof,
		// A release that has waited for an hour should be looked at again before it goes out. Fifty sends with pauses that double up to
		// half a minute are some twenty minutes of a cluster that is down, or busy with a rollout of somebody else's.
		DeadlineSeconds: 3600, MaxAttempts: 50, LongestWaitSeconds: 30, RetryOn: anyFailure,
		Priority: "normal", Escalation: "an operator of the account", Approval: approval,
		ReviewOwner: byOperator, ReviewDueSeconds: lockedFor,
	}
}

// lockedFor is how long an environment may stay locked before somebody else is asked, in seconds: nothing can be released to it meanwhile,
// not even the repair of what is broken there.
const lockedFor = 3600

// byOperator: who may resolve a review is who owns it.
const byOperator = "operator"

// everyone owns what every service answers.
const everyone = "every service"

// local is an entry of a small write that every service answers, and that is finished within its claim.
func local(operation, duplicationCost, proof string) Entry {
	return Entry{
		Type: operation, Owner: everyone, Target: "none", Risk: Repeatable, Effects: []string{}, DuplicationCost: duplicationCost,
		DownstreamKey: KeyNone, Proof: proof,
		// A person or an agent waits for it: what has not worked within minutes needs another look first.
		DeadlineSeconds: 300, MaxAttempts: 10, LongestWaitSeconds: 30, RetryOn: anyFailure,
		Priority: "high", Escalation: "an operator of the account", Approval: "never",
	}
}
