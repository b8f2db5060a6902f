package scenarios

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/einmal/einmal/e2e/harness"
)

// Executed ends the scenario unless the answer is that of a first, successful execution.
func (s *Stage) Executed(what string, a harness.Answer) {
	s.Check(a.Err == nil && a.Status == http.StatusCreated && a.Outcome() == "executed", "%s: got %v, want 201 executed", what, a)
	s.Check(a.Header.Get("Operation-Id") != "" && a.Header.Get("Location") == "/v1/tickets/"+a.Text("id"),
		"%s: Operation-Id %q, Location %q, want both set", what, a.Header.Get("Operation-Id"), a.Header.Get("Location"))
}

// Replayed ends the scenario unless the answer repeats the stored one byte for byte and says so.
func (s *Stage) Replayed(what string, a, stored harness.Answer) {
	s.Check(a.Err == nil && a.Outcome() == "replayed" && a.Header.Get("Idempotent-Replayed") == "true" && a.Header.Get("Idempotency-Executed-At") != "",
		"%s: got %v, want a replay that says so", what, a)
	s.Check(a.Same(stored), "%s: replay differs from what is stored:\n  %v\n  %v", what, a, stored)
}

// Settled ends the scenario unless the answer is a final one that carries the ticket: of the execution itself, or a replay of it.
func (s *Stage) Settled(what string, a harness.Answer) {
	s.Check(a.Err == nil && a.Status == http.StatusCreated && a.Text("id") != "", "%s: got %v, want 201", what, a)
}

// Problem ends the scenario unless the answer is this problem, complete with what a program needs to decide.
func (s *Stage) Problem(what string, a harness.Answer, status int, code string) {
	s.Check(a.Err == nil && a.Status == status && a.Text("code") == code, "%s: got %v, want %d %s", what, a, status, code)
	s.Check(strings.HasPrefix(a.Header.Get("Content-Type"), "application/problem+json"), "%s: Content-Type is %q", what, a.Header.Get("Content-Type"))
	for _, member := range []string{"type", "title", "effect", "retry", "next_action"} {
		s.Check(a.Text(member) != "", "%s: the problem says no %s: %v", what, member, a)
	}
}

// Unavailable ends the scenario unless the answer is 503 store-unavailable with an invitation to send the same once more.
func (s *Stage) Unavailable(what string, a harness.Answer, effect string) {
	s.Problem(what, a, http.StatusServiceUnavailable, "store-unavailable")
	s.Check(a.Text("effect") == effect && a.Text("retry") == "same_key" && a.Header.Get("Retry-After") != "",
		"%s: got %v, want effect %s, retry same_key and a Retry-After", what, a, effect)
}

// countItems is how many items a list has, -1 if the answer is no list.
func countItems(a harness.Answer) int {
	var list struct{ Items []json.RawMessage }
	if json.Unmarshal(a.Body, &list) != nil || list.Items == nil {
		return -1
	}
	return len(list.Items)
}
