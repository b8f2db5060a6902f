package tickets

import (
	"maps"
	"time"

	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/idempotency/idemhttp"
)

// Ticket is a ticket of an account.
type Ticket struct {
	AccountID     string
	ID            string // tkt_…
	Project       string
	Title         string
	Description   string
	Priority      Priority
	Labels        map[string]string
	SourceEventID *string // the event that it is about, unique in its project for ever; nil: none
	Status        Status
	Version       int64 // rises with every change of the status; what others say or do about the ticket leaves it
	CommentCount  int64
	OperationID   string // the operation that created it
	CreatedAt     time.Time
	UpdatedAt     time.Time
	ClosedAt      *time.Time
	Mirror        *Mirror // nil: the ticket is not mirrored
}

// Mirror is the ticket's copy at the external desk, which an operation of its own brings about.
type Mirror struct {
	OperationID string            `json:"operation_id"`
	State       idempotency.State `json:"state"`
	Reference   string            `json:"reference,omitzero"` // the desk's name for it
}

// Priority says how urgent a ticket is.
type Priority string

const (
	Low    Priority = "low"
	Normal Priority = "normal"
	High   Priority = "high"
	Urgent Priority = "urgent"
)

var priorities = []Priority{Low, Normal, High, Urgent}

// newTicket is the ticket that a command asks for, as it is at its beginning.
func newTicket(account, id, operationID string, command *createTicket, now time.Time) Ticket {
	return Ticket{
		AccountID: account, ID: id, OperationID: operationID,
		Project: command.Project, Title: command.Title, Description: command.Description,
		Priority: command.Priority, Labels: command.Labels, SourceEventID: command.SourceEventID,
		Status: Open, Version: 1, CreatedAt: now, UpdatedAt: now,
	}
}

// matches reports whether a ticket has the content that a command asks for. That a second report of an event says something
// else does not make it another ticket, but its sender should know.
func (t Ticket) matches(command *createTicket) bool {
	return t.Title == command.Title && t.Description == command.Description && t.Priority == command.Priority && maps.Equal(t.Labels, command.Labels)
}

// href is where a ticket is found.
func href(id string) string { return "/v1/tickets/" + id }

// resource is a ticket as clients see it.
type resource struct {
	ID            string            `json:"id"`
	Project       string            `json:"project"`
	Title         string            `json:"title"`
	Description   string            `json:"description"`
	Priority      Priority          `json:"priority"`
	Labels        map[string]string `json:"labels"`
	SourceEventID *string           `json:"source_event_id,omitzero"`
	Status        Status            `json:"status"`
	Version       int64             `json:"version"`
	CommentCount  int64             `json:"comment_count"`
	Mirror        *Mirror           `json:"mirror,omitzero"`
	CreatedAt     idemhttp.Time     `json:"created_at"`
	UpdatedAt     idemhttp.Time     `json:"updated_at"`
	ClosedAt      *idemhttp.Time    `json:"closed_at,omitzero"`
}

func (t Ticket) resource() resource {
	return resource{
		ID: t.ID, Project: t.Project, Title: t.Title, Description: t.Description, Priority: t.Priority, Labels: t.Labels,
		SourceEventID: t.SourceEventID, Status: t.Status, Version: t.Version, CommentCount: t.CommentCount, Mirror: t.Mirror,
		CreatedAt: idemhttp.Time(t.CreatedAt), UpdatedAt: idemhttp.Time(t.UpdatedAt), ClosedAt: (*idemhttp.Time)(t.ClosedAt),
	}
}

// Dispositions say whether a creation made its ticket or found it.
const (
	created  = "created"
	existing = "existing"
)

// creation is the answer to a creation: the ticket, and how it came about.
type creation struct {
	resource
	Disposition    string `json:"disposition"`
	ContentMatches *bool  `json:"content_matches,omitzero"` // of an existing one
}
