package scenarios

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/einmal/einmal/e2e/harness"
)

var sameKeyOtherRoute = Scenario{
	Name:    "same_key_other_route",
	Promise: "Method and concrete path are part of what a key names, and a route that is none uses no key up.",
	run: func(s *Stage) int {
		service := s.Serve("")
		key, body := s.NewKey(), s.NewTicket().JSON()
		send := func(method, path string) harness.Answer {
			return s.Do(harness.Call{Base: service.URL(), Method: method, Path: path, Key: key, Body: body})
		}

		s.Problem("a path that is none", send(http.MethodPost, "/v1/ticket"), http.StatusNotFound, "route-not-found")
		s.Problem("a method that is none", send(http.MethodDelete, "/v1/tickets"), http.StatusMethodNotAllowed, "method-not-allowed")
		created := s.Create(service.URL(), key, body)
		s.Executed("the key on its route", created)
		s.Problem("a used key and a path that is none", send(http.MethodPost, "/v1/ticket"), http.StatusNotFound, "route-not-found")
		s.Problem("a used key and a method that is none", send(http.MethodDelete, "/v1/tickets"), http.StatusMethodNotAllowed, "method-not-allowed")
		s.Replayed("the key on its route again", s.Create(service.URL(), key, body), created)

		s.fingerprintNamesRoute(service, body)
		s.Notef("404 and 405 neither used the key nor answered from it; the stored fingerprint covers method and path " +
			"(there is one write route so far, so no second one could be tried with a used key)")
		return 1
	},
}

// fingerprintNamesRoute checks that the stored fingerprint is the hash of a text that names account, method and path.
func (s *Stage) fingerprintNamesRoute(service *harness.Service, body string) {
	question, err := json.Marshal(map[string]any{"method": "POST", "path": "/v1/tickets", "body": json.RawMessage(body)})
	s.must(err)
	answer := s.Do(harness.Call{Base: service.URL(), Method: http.MethodPost, Path: "/v1/fingerprints", Body: string(question)})
	canonical := answer.Text("canonical")
	for _, part := range []string{`"account":"acme"`, `"method":"POST"`, `"path":"/v1/tickets"`} {
		s.Check(strings.Contains(canonical, part), "the fingerprinted text has no %s: %v", part, answer)
	}
	fingerprint := fmt.Sprintf("v1:%x", sha256.Sum256([]byte(canonical)))
	s.Check(answer.Text("fingerprint") == fingerprint, "the fingerprint is %s, want the hash of the text: %s", answer.Text("fingerprint"), fingerprint)
	s.Check(s.Count("SELECT count(*) FROM operations WHERE fingerprint = $1", fingerprint) == 1, "the operation is stored under another fingerprint than %s", fingerprint)
}
