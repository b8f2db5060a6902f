package scenarios

import (
	"fmt"
	"net/http"

	"github.com/einmal/einmal/e2e/harness"
)

// Ticket reads a ticket.
func (s *Stage) Ticket(base, id string) harness.Answer {
	return s.Do(harness.Call{Base: base, Method: http.MethodGet, Path: "/v1/tickets/" + id})
}

// Comment sends POST /v1/tickets/{id}/comments once.
func (s *Stage) Comment(base, id, key, text string) harness.Answer {
	return s.Do(harness.Call{Base: base, Method: http.MethodPost, Path: "/v1/tickets/" + id + "/comments", Key: key, Body: fmt.Sprintf(`{"body":%q}`, text)})
}

// SetStatus sends PUT /v1/tickets/{id}/status once. A version of 0 is not sent.
func (s *Stage) SetStatus(base, id, key, status string, version int) harness.Answer {
	body := fmt.Sprintf(`{"status":%q}`, status)
	if version > 0 {
		body = fmt.Sprintf(`{"status":%q,"expected_version":%d}`, status, version)
	}
	return s.Do(harness.Call{Base: base, Method: http.MethodPut, Path: "/v1/tickets/" + id + "/status", Key: key, Body: body})
}

// made creates a ticket and returns its id.
func (s *Stage) made(base string) (id string) {
	answer := s.Create(base, s.NewKey(), s.NewTicket().JSON())
	s.Executed("a ticket", answer)
	return answer.Text("id")
}

// set ends the scenario unless the answer is that the ticket has a status, at a version, and whether that changed it.
func (s *Stage) set(what string, a harness.Answer, status string, version float64, changed bool) {
	s.Check(a.Err == nil && a.Status == http.StatusOK && a.Text("status") == status && a.Is("version", version) && a.Is("changed", changed),
		"%s: got %v, want 200 with status %s, version %v, changed %v", what, a, status, version, changed)
}

// is ends the scenario unless a ticket has a status and a version now.
func (s *Stage) is(what string, base, id, status string, version float64) {
	a := s.Ticket(base, id)
	s.Check(a.Status == http.StatusOK && a.Text("status") == status && a.Is("version", version), "%s: the ticket is %v, want %s at version %v", what, a, status, version)
}
