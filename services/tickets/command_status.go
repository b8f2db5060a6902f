package tickets

import (
	"slices"

	"github.com/einmal/einmal/pkg/problem"
)

// setStatus is the command of PUT /v1/tickets/:id/status: the status that is wanted, whatever it is now. Who decides by what they have
// read says so with the version that it had.
type setStatus struct {
	Status          Status `json:"status"`
	ExpectedVersion *int64 `json:"expected_version"`
}

// Validate returns everything that is wrong.
func (c *setStatus) Validate() (violations []problem.Violation) {
	if !slices.Contains(statuses, c.Status) {
		violations = append(violations, problem.Violation{Pointer: "/status", Detail: "must be one of open, in_progress, resolved, closed"})
	}
	if c.ExpectedVersion != nil && *c.ExpectedVersion < 1 {
		violations = append(violations, problem.Violation{Pointer: "/expected_version", Detail: "must be the version that a ticket had when it was read, 1 at least"})
	}
	return violations
}
