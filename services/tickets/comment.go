package tickets

import (
	"time"

	"github.com/einmal/einmal/pkg/idempotency/idemhttp"
)

// Comment is what somebody has said about a ticket. It never changes.
type Comment struct {
	AccountID   string
	TicketID    string
	ID          string // cmt_…
	Author      string // the principal who said it
	Body        string
	OperationID string // the operation that made it
	CreatedAt   time.Time
}

// commentsHref is where the comments of a ticket are found.
func commentsHref(ticketID string) string { return href(ticketID) + "/comments" }

// href is where a comment is found.
func (c Comment) href() string { return commentsHref(c.TicketID) + "/" + c.ID }

// commentResource is a comment as clients see it.
type commentResource struct {
	ID        string        `json:"id"`
	TicketID  string        `json:"ticket_id"`
	Author    string        `json:"author"`
	Body      string        `json:"body"`
	CreatedAt idemhttp.Time `json:"created_at"`
}

func (c Comment) resource() commentResource {
	return commentResource{ID: c.ID, TicketID: c.TicketID, Author: c.Author, Body: c.Body, CreatedAt: idemhttp.Time(c.CreatedAt)}
}
