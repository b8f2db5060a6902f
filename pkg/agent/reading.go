package agent

import (
	"bytes"
	"cmp"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/einmal/einmal/pkg/problem"
)

// Reading is what was seen of one request, in one word: a problem's code, or one of these.
type Reading string

const (
	Finished     Reading = "finished"      // a final answer that is no problem
	Accepted     Reading = "accepted"      // 202: the operation goes on
	NotConnected Reading = "not connected" // no connection came about, so nothing was sent
	NoAnswer     Reading = "no answer"     // it may have been received
	Unreadable   Reading = "unreadable"    // an answer that is not the target's own, or contradicts itself
	UnknownCode  Reading = "unknown code"  // a problem whose code is not in the catalogue that this agent knows
	Foreign      Reading = "foreign"       // an operation under our key that another run has begun
	Vanished     Reading = "vanished"      // an operation that was seen, and whose key is not known any more
	Interrupted  Reading = "interrupted"   // an attempt of which the journal does not say how it ended: the agent has died

	StatusSuccess   Reading = "status 2xx"
	StatusRefused   Reading = "status 4xx"
	StatusNotLetIn  Reading = "status 401 or 403"
	StatusConflict  Reading = "status 409"
	StatusLimited   Reading = "status 429 or 503"
	StatusFailed    Reading = "status 5xx"
	StatusNotFollow Reading = "status 3xx" // redirects of a write are not followed
)

// words are the readings of no code for a person.
var words = map[Reading]string{
	Finished:     "done",
	Accepted:     "accepted, it goes on",
	NotConnected: "no connection, so nothing was sent",
	NoAnswer:     "sent, and no answer came",
	Unreadable:   "an answer that can't be understood",
	UnknownCode:  "a problem of a code that this agent does not know",
	Foreign:      "an operation of another run under this key",
	Vanished:     "an operation that was seen, and that the target knows no more",
	Interrupted:  "the agent ended before it knew of an answer",

	StatusSuccess:   "done",
	StatusRefused:   "refused",
	StatusNotLetIn:  "not let in: is it the right token?",
	StatusConflict:  "in progress, or done already",
	StatusLimited:   "too busy, or asked too often",
	StatusFailed:    "it has failed, and may have done it before",
	StatusNotFollow: "a redirect, which is not followed",
}

// Code is the reading of a problem.
func Code(code problem.Code) Reading { return Reading(code) }

// OperationIs is the reading of an operation in a state.
func OperationIs(state string) Reading { return Reading("operation " + state) }

// Seen is what was seen of one request, as it is journaled: no more of an answer than somebody needs who has to decide.
type Seen struct {
	Reading    Reading             `json:"reading"`
	Status     int                 `json:"status,omitzero"`
	Detail     string              `json:"detail,omitzero"`    // of a problem, for a person; or why there is no answer
	Outcome    string              `json:"outcome,omitzero"`   // Idempotency-Outcome
	Effect     problem.Effect      `json:"effect,omitzero"`    // what the answer says about it
	Operation  Operation           `json:"operation,omitzero"` // what the answer says about the operation of the key
	RetryAfter int64               `json:"retry_after_seconds,omitzero"`
	Errors     []problem.Violation `json:"errors,omitempty"`  // of a problem: what is wrong with the request
	Final      bool                `json:"final,omitzero"`    // it is how the operation ended
	Response   *Response           `json:"response,omitzero"` // and this its answer
}

// Operation is what is known of the operation of a key.
type Operation struct {
	ID         string `json:"id,omitzero"`
	State      string `json:"state,omitzero"`
	ApprovalID string `json:"approval_id,omitzero"`
	ReviewID   string `json:"review_id,omitzero"`
}

// Response is the final answer to a command.
type Response struct {
	Status   int            `json:"status"`
	Location string         `json:"location,omitzero"`
	Body     jsontext.Value `json:"body,omitzero"`
	Text     string         `json:"text,omitzero"` // of a body that is no JSON, which only a target without the contract has
}

// received is an answer as it came.
type received struct {
	status int
	header http.Header
	body   []byte
	at     time.Time
}

// readWrite reads the answer to an attempt at a target that keeps the contract.
func readWrite(r received) Seen {
	s := r.seen()
	if r.status >= 300 {
		return r.problem(s)
	}
	switch s.Outcome {
	case "executed", "replayed":
		if r.status != http.StatusNoContent && (!r.isJSON() || r.isProblem()) {
			return s.as(Unreadable, "status %d, %s, without a body that is JSON and no problem", r.status, s.Outcome)
		}
		s.Reading, s.Final, s.Effect = Finished, true, problem.EffectApplied
		s.Response = &Response{Status: r.status, Location: r.header.Get("Location"), Body: r.body}
		return s
	case "accepted", "in_progress":
		op := r.operation()
		if r.status != http.StatusAccepted || op.ID == "" {
			return s.as(Unreadable, "the answer says %s and holds no operation", s.Outcome)
		}
		s.Reading, s.Operation, s.Effect = Accepted, op.Operation, op.Effect
		s.RetryAfter = cmp.Or(s.RetryAfter, bounded(op.RetryAfterSeconds))
		return s
	}
	return s.as(Unreadable, "status %d without an Idempotency-Outcome that is known", r.status)
}

// readQuestion reads the answer to a look-up by key, or to a poll, about the key of a run. A look-up knows no command: only who began what is under the key.
func readQuestion(r received, run string) Seen {
	s := r.seen()
	if r.status != http.StatusOK {
		return r.problem(s)
	}
	op := r.operation()
	s.Operation, s.Effect = op.Operation, op.Effect
	s.Reading = OperationIs(op.State)
	if _, known := Contract[s.Reading]; !known || op.ID == "" || op.State == "" {
		return s.as(Unreadable, "the answer is not an operation in a state that is known")
	}
	if op.AgentRun != run {
		s.Operation = Operation{}
		return s.as(Foreign, "operation %s of this key was begun by run %q", op.ID, op.AgentRun)
	}
	s.RetryAfter = cmp.Or(s.RetryAfter, bounded(op.RetryAfterSeconds))
	if s.Final = slices.Contains(finalStates, op.State); !s.Final {
		return s // an operation that goes on has no answer yet, whatever is said: it would be journaled at each look
	}
	s.Response = op.Response
	if op.Response == nil || op.State == "succeeded" {
		return s
	}
	if p, ok := asProblem(op.Response.Body); ok {
		s.Reading, s.Detail, s.Errors = codeOf(p.Code), p.Detail, p.Errors
	}
	return s
}

// finalStates are those that an operation never leaves.
var finalStates = []string{"succeeded", "failed", "canceled"}

// readStatus reads the answer of a target that does not keep the contract: its bodies may say anything.
func readStatus(r received) Seen {
	s := r.seen()
	s.Operation, s.Outcome = Operation{}, ""
	switch {
	case r.status >= 500 && r.status != http.StatusServiceUnavailable, r.status == http.StatusRequestTimeout:
		s.Reading = StatusFailed
	case r.status == http.StatusServiceUnavailable, r.status == http.StatusTooManyRequests:
		s.Reading = StatusLimited
	case r.status == http.StatusUnauthorized, r.status == http.StatusForbidden, r.status == http.StatusProxyAuthRequired:
		s.Reading = StatusNotLetIn
	case r.status == http.StatusConflict:
		s.Reading = StatusConflict
	case r.status >= 400:
		s.Reading = StatusRefused
	case r.status >= 300:
		s.Reading = StatusNotFollow
	case r.isProblem():
		return s.as(Unreadable, "status %d with a problem document", r.status)
	default:
		s.Reading, s.Effect, s.Final = StatusSuccess, problem.EffectApplied, true
		s.Response = &Response{Status: r.status, Location: r.header.Get("Location")}
		if r.isJSON() {
			s.Response.Body = r.body
		} else {
			s.Response.Text = string(bytes.ToValidUTF8(r.body, []byte("\ufffd")))
		}
	}
	return s
}

// as is the same sight, read otherwise, with the reason.
func (s Seen) as(reading Reading, format string, args ...any) Seen {
	s.Reading, s.Detail = reading, fmt.Sprintf(format, args...)
	s.Effect, s.Final, s.Response, s.Errors = problem.EffectUnknown, false, nil, nil
	return s
}

// seen is what every answer says.
func (r received) seen() Seen {
	return Seen{
		Status: r.status, Outcome: r.header.Get("Idempotency-Outcome"), Operation: Operation{ID: r.header.Get("Operation-Id")},
		RetryAfter: retryAfter(r.header, r.at),
	}
}

// problem reads an answer that is no success. Only a problem document whose code belongs to its status is the target's own: pages, redirects and
// whatever else somebody on the way has put there say nothing.
func (r received) problem(s Seen) Seen {
	p, ok := asProblem(r.body)
	switch {
	case !ok || !r.isProblem():
		return s.as(Unreadable, "status %d without a problem document", r.status)
	case p.Status != r.status:
		return s.as(Unreadable, "status %d with a problem that says %d", r.status, p.Status)
	}
	s.Reading, s.Detail, s.Effect, s.Errors = codeOf(p.Code), p.Detail, p.Effect, p.Errors
	if entry, known := problem.Lookup(p.Code); known && entry.Status != r.status && p.Code != problem.MalformedRequest {
		return s.as(Unreadable, "status %d with the code %s, which has %d", r.status, p.Code, entry.Status)
	}
	s.RetryAfter = cmp.Or(s.RetryAfter, bounded(int64(p.RetryAfterSeconds)))
	// A refusal that is stored is the answer of the key; one for now names no operation of its own.
	if s.Final = s.Outcome == "replayed" || s.Outcome == "refused" && s.Operation.ID != ""; s.Final {
		s.Response = &Response{Status: r.status, Location: r.header.Get("Location"), Body: r.body}
	}
	if s.Operation.ID == "" || s.Operation.ID == p.OperationID {
		s.Operation = Operation{ID: p.OperationID, State: p.OperationState}
	}
	return s
}

// codeOf is the reading of a code. One that is not in the catalogue has a row of its own.
func codeOf(code problem.Code) Reading {
	if _, known := problem.Lookup(code); !known {
		return UnknownCode
	}
	return Code(code)
}

// operation is the operation resource, as far as an agent needs it.
type operation struct {
	Operation
	AgentRun          string         `json:"agent_run"`
	Effect            problem.Effect `json:"effect"`
	Response          *Response      `json:"response"`
	RetryAfterSeconds int64          `json:"retry_after_seconds"`
}

func (r received) operation() (op operation) {
	if json.Unmarshal(r.body, &op) != nil {
		return operation{}
	}
	return op
}

func asProblem(body []byte) (p problem.Problem, ok bool) {
	err := json.Unmarshal(body, &p)
	return p, err == nil && p.Code != ""
}

// isProblem tells a problem document by its media type, or, where somebody has taken that for plain JSON, by a code and a status of an error.
func (r received) isProblem() bool {
	p, ok := asProblem(r.body)
	return r.media() == problem.ContentType || r.media() == "application/json" && ok && p.Status >= 400
}

func (r received) isJSON() bool {
	return r.media() == "application/json" && jsontext.Value(r.body).IsValid()
}

func (r received) media() string {
	media, _, _ := mime.ParseMediaType(r.header.Get("Content-Type"))
	return media
}
