package catalogue

// The operation types. They are stored with every operation and never renamed.
const (
	TicketCreate = "ticket.create"
)

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
}
