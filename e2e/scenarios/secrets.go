package scenarios

import (
	"strings"
	"sync"

	"github.com/einmal/einmal/e2e/harness"
	"github.com/einmal/einmal/pkg/problem"
)

// problems are the problem documents that services have answered with, to any of a scenario's goroutines.
type problems struct {
	mu   sync.Mutex
	text strings.Builder
}

// heard keeps an answer if it is a problem, for checkSecrets.
func (s *Stage) heard(a harness.Answer) harness.Answer {
	if a.Header.Get("Content-Type") == problem.ContentType {
		s.problems.mu.Lock()
		defer s.problems.mu.Unlock()
		s.problems.text.Write(a.Body)
	}
	return a
}

// checkSecrets ends the scenario if a key or a body that a caller has sent stands in what the services have logged, in the
// exported log or in a problem. Bearer tokens of the demo are names of principals, which are told; those that the provider is shown are not.
func (s *Stage) checkSecrets() {
	log, err := s.db.Audit(s.ctx, "export")
	s.must(err)
	problems := strings.ReplaceAll(s.problems.text.String(), "Bearer TOKEN", "") // which is what a 401 says is to be sent
	for _, told := range []struct{ in, text string }{{"a problem", problems}, {"the audit log", log}, {"what the services have logged", s.serviceLogs()}} {
		for _, secret := range append(s.secrets, "Bearer ", "demo-provider", hookSecret) {
			s.Check(!strings.Contains(told.text, secret), "%s tells %q", told.in, secret)
		}
	}
}

// serviceLogs is what the services have written, without the outside world's.
func (s *Stage) serviceLogs() string {
	var all strings.Builder
	for _, service := range s.services {
		all.WriteString(service.Log())
	}
	return all.String()
}
