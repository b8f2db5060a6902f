package tickets

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/einmal/einmal/pkg/problem"
)

// Limits of a ticket. Text is counted in characters (code points) where people write it, in bytes where it is bulk.
const (
	maxTitle         = 200     // characters: one line in any list
	maxDescription   = 500_000 // bytes: an alert with a long log, well inside one request
	maxLabels        = 32
	maxLabelName     = 64  // characters
	maxLabelValue    = 255 // characters
	maxSourceEventID = 255 // characters, as long as an idempotency key
)

// name is the rule for projects, as for every name that ends up in paths and lists.
var name = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// createTicket is the command of POST /v1/tickets. Its fields in this form, defaults applied, are what is fingerprinted: a
// change here is a new fingerprint version.
type createTicket struct {
	Project       string            `json:"project"`
	Title         string            `json:"title"`
	Description   string            `json:"description"`
	Priority      Priority          `json:"priority"`
	Labels        map[string]string `json:"labels"`
	SourceEventID *string           `json:"source_event_id"`
}

// newCreateTicket is the command with the defaults of what a body leaves out. Text stays as it was sent.
func newCreateTicket() *createTicket {
	return &createTicket{Priority: Normal, Labels: map[string]string{}}
}

// Validate returns everything that is wrong.
func (c *createTicket) Validate() []problem.Violation {
	var all []problem.Violation
	wrong := func(pointer jsontext.Pointer, format string, args ...any) {
		all = append(all, problem.Violation{Pointer: string(pointer), Detail: fmt.Sprintf(format, args...)})
	}
	if !name.MatchString(c.Project) {
		wrong("/project", "must be 1 to 63 of a-z, 0-9 and -, beginning and ending with a letter or digit")
	}
	if n := utf8.RuneCountInString(c.Title); n < 1 || n > maxTitle {
		wrong("/title", "must have 1 to %d characters", maxTitle)
	}
	if len(c.Description) > maxDescription {
		wrong("/description", "must have at most %d bytes", maxDescription)
	}
	if !slices.Contains(priorities, c.Priority) {
		wrong("/priority", "must be one of low, normal, high, urgent")
	}
	if len(c.Labels) > maxLabels {
		wrong("/labels", "must have at most %d members", maxLabels)
	}
	for label, value := range c.Labels {
		at := jsontext.Pointer("/labels").AppendToken(label)
		switch {
		case label == "" || utf8.RuneCountInString(label) > maxLabelName:
			wrong(at, "the name of a label must have 1 to %d characters", maxLabelName)
		case utf8.RuneCountInString(value) > maxLabelValue:
			wrong(at, "must have at most %d characters", maxLabelValue)
		}
	}
	if id := c.SourceEventID; id != nil {
		switch {
		case *id == "":
			wrong("/source_event_id", "must not be empty; leave it out if the ticket is about no event")
		case strings.TrimFunc(*id, unicode.IsSpace) != *id:
			wrong("/source_event_id", "must not begin or end with white space: two senders that differ in it would make two tickets")
		case utf8.RuneCountInString(*id) > maxSourceEventID:
			wrong("/source_event_id", "must have at most %d characters", maxSourceEventID)
		}
	}
	slices.SortStableFunc(all, func(a, b problem.Violation) int { return strings.Compare(a.Pointer, b.Pointer) }) // maps have no order
	return all
}
