package scenarios

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/einmal/einmal/e2e/harness"
)

// Question is a review as callers read it.
type Question struct {
	ID          string
	Kind        string
	State       string
	OperationID string `json:"operation_id"`
	ResolvedBy  string `json:"resolved_by"`
	ResolvedAs  string `json:"resolved_as"`
	Evidence    []struct{ Source, Says string }
}

// says reports whether some evidence has all of these parts.
func (q Question) says(parts ...string) bool {
	for _, e := range q.Evidence {
		all := true
		for _, part := range parts {
			all = all && strings.Contains(e.Says, part)
		}
		if all {
			return true
		}
	}
	return false
}

// Question reads a review.
func (s *Stage) Question(replica *harness.Service, id string) (q Question) {
	answer := s.Do(harness.Call{Base: replica.URL(), Method: http.MethodGet, Path: "/v1/reviews/" + id})
	s.Check(answer.Status == http.StatusOK && json.Unmarshal(answer.Body, &q) == nil, "the review %s is %v", id, answer)
	return q
}

// Asked waits until a person is asked about an operation by a review of a kind, and reads it.
func (s *Stage) Asked(replica *harness.Service, kind, operation string) Question {
	const where = "FROM reviews WHERE kind = $1 AND operation_id = $2"
	s.Await(fmt.Sprintf("a person is asked about %s: %s", operation, kind), func() bool { return s.Count("SELECT count(*) "+where, kind, operation) > 0 })
	s.AskedOnce(kind, operation)
	return s.Question(replica, s.Text("SELECT id "+where, kind, operation))
}

// AskedOnce ends the scenario unless an operation has one review of a kind.
func (s *Stage) AskedOnce(kind, operation string) {
	n := s.Count("SELECT count(*) FROM reviews WHERE kind = $1 AND operation_id = $2", kind, operation)
	s.Check(n == 1, "%d reviews of kind %s are about %s, want 1", n, kind, operation)
}

// Resolves resolves a review in the words of a person who has looked, once nobody asks its target at that moment.
func (s *Stage) Resolves(replica *harness.Service, review, key, state, reference string) (answer harness.Answer) {
	said := map[string]string{"evidence": "seen in the web interface", "reference": reference}
	if state != "" {
		said["state"] = state
	}
	s.Await("the target is not being asked", func() bool {
		answer = s.Do(harness.Call{
			Base: replica.URL(), Method: http.MethodPost, Path: "/v1/reviews/" + review + "/resolution", Token: operator, Key: key, Body: encode(said),
		})
		return answer.Text("code") != "operation-running"
	})
	return answer
}
