package scenarios

import (
	"net/http"
	"strings"
	"time"

	"github.com/einmal/einmal/e2e/harness"
	"github.com/einmal/einmal/pkg/idempotency"
)

var deniedAttemptsAreLogged = Scenario{
	Name:    "denied_attempts_are_logged",
	Promise: "Who was refused is in the log, with what they tried: whose key, which route, in which run; and not what they sent.",
	run: func(s *Stage) int {
		service := s.ServeSealing(s.db.URL, "", 50*time.Millisecond)
		const secret = "sesame-open-the-till"
		refused := []struct {
			what   string
			call   harness.Call
			status int
		}{
			{"without a key", harness.Call{Body: s.NewTicket().JSON()}, http.StatusBadRequest},
			{"with a key that is none", harness.Call{Key: "one,two", Body: s.NewTicket().JSON()}, http.StatusBadRequest},
			{"by who may not", harness.Call{Token: "demo-approver", Key: "tried-by-approver", Body: s.NewTicket().JSON()}, http.StatusForbidden},
			{"with what is no command", harness.Call{Key: "tried-nonsense", Body: `{"project":"ops","title":"t","` + secret + `":1}`}, http.StatusUnprocessableEntity},
			{"with what is no JSON", harness.Call{Key: "tried-no-json", Body: secret}, http.StatusBadRequest},
		}
		for i, r := range refused {
			r.call.Base, r.call.Method, r.call.Path = service.URL(), http.MethodPost, "/v1/tickets"
			r.call.Header = http.Header{"Agent-Run-Id": {"run-of-" + strings.ReplaceAll(r.what, " ", "-")}}
			answer := s.Do(r.call)
			s.Check(answer.Status == r.status, "%s: got %v, want %d", r.what, answer, r.status)
			s.Check(s.Count("SELECT count(*) FROM events WHERE type = 'denied'") == i+1, "%s: it is not in the log", r.what)
			hash := ""
			if r.call.Key != "" && !strings.Contains(r.call.Key, ",") {
				hash = idempotency.Key(r.call.Key).Hash()
			}
			n := s.Count("SELECT count(*) FROM events WHERE type = 'denied' AND account_id = 'acme' AND agent_run = $1 AND key_hash = $2 AND route = 'POST /v1/tickets' AND request_id <> ''",
				r.call.Header.Get("Agent-Run-Id"), hash)
			s.Check(n == 1, "%s: it is not in the log with its run, key and route", r.what)
		}
		key := s.NewKey() // and what the executor refuses
		made := s.Create(service.URL(), key, s.NewTicket().JSON())
		s.Executed("a creation", made)
		conflict := s.Create(service.URL(), key, `{"project":"ops","title":"another"}`)
		s.Problem("another command under its key", conflict, http.StatusUnprocessableEntity, "idempotency-key-reused")
		s.Check(s.Count("SELECT count(*) FROM events WHERE type = 'conflict' AND operation_id = $1", made.Header.Get("Operation-Id")) == 1, "the conflict is not in the log")
		s.AwaitSealed()
		log, err := s.db.Audit(s.ctx, "export")
		s.must(err)
		for _, told := range []string{secret, "demo-approver\",\"token", "tried-nonsense", key} {
			s.Check(!strings.Contains(log, told), "the log tells %q", told)
		}
		s.Notef("%d refused attempts are in the log, sealed, with run, route and the hash of their key", len(refused)+1)
		return 1
	},
}
