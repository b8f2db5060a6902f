package tickets

import (
	"fmt"
	"time"

	"github.com/einmal/einmal/pkg/problem"
)

// Status says where a ticket stands.
type Status string

const (
	Open       Status = "open"
	InProgress Status = "in_progress"
	Resolved   Status = "resolved"
	Closed     Status = "closed"
)

var statuses = []Status{Open, InProgress, Resolved, Closed}

// refuses says why a ticket is not set to the status that a command asks for, or returns nil. Closed is an end that nobody leaves by
// accident: a late retry, or a monitor that has not heard of it, must not open a ticket again. It is left only to open, and only by who
// says which version they have seen.
func (t Ticket) refuses(command *setStatus) *problem.Problem {
	seen := command.ExpectedVersion
	switch {
	case t.Status == Closed && command.Status != Closed && (command.Status != Open || seen == nil):
		return problem.New(problem.TicketClosed, fmt.Sprintf("This ticket is closed, at version %d. It can only be set to open, with that as expected_version.", t.Version))
	case seen != nil && *seen != t.Version:
		return problem.New(problem.VersionMismatch, fmt.Sprintf("This ticket is at version %d, not at %d as the command expects.", t.Version, *seen))
	}
	return nil
}

// withStatus is the ticket as it is when it has come to a status.
func (t Ticket) withStatus(status Status, now time.Time) Ticket {
	t.Status, t.Version, t.UpdatedAt, t.ClosedAt = status, t.Version+1, now, nil
	if status == Closed {
		t.ClosedAt = &now
	}
	return t
}

// statusSet is the answer to a command that sets the status: the ticket, and whether that command has changed it.
type statusSet struct {
	resource
	Changed bool `json:"changed"`
}
