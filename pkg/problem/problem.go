package problem

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
)

// ContentType is the media type of a problem document (RFC 9457, section 6.1).
const ContentType = "application/problem+json"

// Problem is one problem document. It is an error, so that a function deep inside can return what the caller shall read.
// The order of the fields is the order of the members in JSON.
type Problem struct {
	Type              string      `json:"type"` // a URL reference the service answers with a page: see Page
	Title             string      `json:"title"`
	Status            int         `json:"status"`
	Detail            string      `json:"detail"`
	Instance          string      `json:"instance,omitempty"` // the operation, or else the path that was asked for
	Code              Code        `json:"code"`
	OperationID       string      `json:"operation_id,omitempty"`
	OperationState    string      `json:"operation_state,omitempty"`
	Effect            Effect      `json:"effect"`
	Retry             Retry       `json:"retry"`
	RetryAfterSeconds int         `json:"retry_after_seconds,omitempty"`
	NextAction        NextAction  `json:"next_action"`
	Remaining         string      `json:"remaining,omitempty"` // of refund-exceeds-remaining: the most that can be refunded now
	Holder            *Holder     `json:"holder,omitempty"`    // of environment-locked: who holds it
	Errors            []Violation `json:"errors,omitempty"`
}

// Holder is who holds the lock of an environment.
type Holder struct {
	DeploymentID string `json:"deployment_id"`
	OperationID  string `json:"operation_id"`
}

// Violation is one thing that is wrong with a request. Pointer is a JSON pointer into the body (RFC 6901), or "?name" for a
// parameter of the query; "" is the whole body, or a header that the detail names.
type Violation struct {
	Pointer string `json:"pointer"`
	Detail  string `json:"detail"`
}

// New returns the problem that code names, filled from the catalogue. The detail is for a person and is about this
// occurrence; it must hold nothing that the caller may not see. A code outside the catalogue gives internal-error
// without the detail.
//
// The fields may be changed where this occurrence is known better than the catalogue can: an effect that is certain,
// a time to wait that is exact.
func New(code Code, detail string) *Problem {
	entry, ok := Lookup(code)
	if !ok {
		entry, _ = Lookup(InternalError)
		detail = ""
	}
	return &Problem{
		Type:              TypeURL(entry.Code),
		Title:             entry.Title,
		Status:            entry.Status,
		Detail:            detail,
		Code:              entry.Code,
		Effect:            entry.Effect,
		Retry:             entry.Retry,
		RetryAfterSeconds: entry.RetryAfterSeconds,
		NextAction:        entry.NextAction,
	}
}

// Invalid returns validation-failed with everything that is wrong, so that a caller repairs a request in one go.
func Invalid(violations ...Violation) *Problem {
	p := New(ValidationFailed, "The request is well formed but not valid; errors lists what is wrong.")
	p.Errors = violations
	return p
}

// Error returns "code: detail".
func (p *Problem) Error() string {
	if p.Detail == "" {
		return string(p.Code)
	}
	return string(p.Code) + ": " + p.Detail
}

// JSON returns the document. A final refusal is stored as these bytes and replayed as these bytes.
func (p *Problem) JSON() []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // it is never read as HTML, and a person reads it in a terminal
	if err := e.Encode(p); err != nil {
		panic(err) // strings, numbers and slices of them: cannot fail
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// Write answers with the document. Headers already set stay, so the caller may add its own before.
func (p *Problem) Write(w http.ResponseWriter) {
	body := p.JSON()
	h := w.Header()
	h.Set("Content-Type", ContentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store") // some of these statuses (404, 405, 410) are cacheable by default
	if p.RetryAfterSeconds > 0 {
		h.Set("Retry-After", strconv.Itoa(p.RetryAfterSeconds))
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(body) // nobody is left to tell
}
