package tickets

import (
	"fmt"

	"github.com/einmal/einmal/pkg/problem"
)

// maxComment bounds a comment, in bytes: a page of log, and many of them on one page of a list.
const maxComment = 50_000

// addComment is the command of POST /v1/tickets/:id/comments.
type addComment struct {
	Body string `json:"body"`
}

// Validate returns everything that is wrong.
func (c *addComment) Validate() (violations []problem.Violation) {
	if n := len(c.Body); n < 1 || n > maxComment {
		violations = append(violations, problem.Violation{Pointer: "/body", Detail: fmt.Sprintf("must have 1 to %d bytes", maxComment)})
	}
	return violations
}
