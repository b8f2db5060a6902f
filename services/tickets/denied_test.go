package tickets_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/server/servertest"
)

// denied are the events of refused attempts, by what identifies their request.
func (r running) denied(t *testing.T) (all []struct{ AccountID, Principal, RequestID, Route, KeyHash, AgentRun, OperationID string }) {
	t.Helper()
	err := r.db.Read(context.WithoutCancel(t.Context())).Table("events").Where("type = 'denied'").Order("id").Find(&all).Error
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestAnAttemptThatIsDenied(t *testing.T) {
	const good = `{"project":"ops","title":"t"}`
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)
		cases := []struct {
			name, token, method, path, body string
			headers                         []string
			status                          int
			events                          int
		}{
			{"without a key", "demo-agent", "POST", "/v1/tickets", good, nil, 400, 1},
			{"with a key that is none", "demo-agent", "POST", "/v1/tickets", good, []string{"Idempotency-Key: a,b"}, 400, 1},
			{"by a role that may not", "demo-approver", "POST", "/v1/tickets", good, []string{key("k")}, 403, 1},
			{"with a body that is none", "demo-agent", "POST", "/v1/tickets", "{", []string{key("k")}, 400, 1},
			{"of another media type", "demo-agent", "POST", "/v1/tickets", good, []string{key("k"), "Content-Type: text/plain"}, 415, 1},
			{"that is not valid", "demo-agent", "POST", "/v1/tickets", `{"project":"ops"}`, []string{key("k")}, 422, 1},
			{"about what is not there", "demo-agent", "PUT", "/v1/tickets/tkt_no/status", `{"status":"closed"}`, []string{key("k")}, 404, 1},
			{"by nobody that is known", "nobody", "POST", "/v1/tickets", good, []string{key("k")}, 401, 0},
			{"on a route that is none", "demo-agent", "POST", "/v1/nothing", good, []string{key("k")}, 404, 0},
			{"of a read", "demo-agent", "GET", "/v1/tickets?limit=x", "", nil, 422, 0},
			{"of a fingerprint", "demo-agent", "POST", "/v1/fingerprints", `{}`, nil, 422, 0},
		}
		for _, c := range cases {
			t.Run(c.name+" is in the log when the caller hears of it", func(t *testing.T) {
				before := len(s.denied(t))
				answer := s.As(c.token).Send(t, c.method, c.path, c.body, append([]string{"X-Request-Id: req-1", "Agent-Run-Id: run-7"}, c.headers...)...)
				all := s.denied(t)
				if answer.Status != c.status || len(all)-before != c.events {
					t.Fatalf("%s, and %d events, want %d and %d", answer, len(all)-before, c.status, c.events)
				}
				if c.events == 0 {
					return
				}
				e := all[len(all)-1]
				if e.AccountID != "acme" || e.Principal != c.token || e.RequestID != "req-1" || e.Route != c.method+" "+c.path || e.AgentRun != "run-7" || e.OperationID != "" {
					t.Errorf("%+v", e)
				}
				want := ""
				if len(c.headers) > 0 && c.headers[0] == key("k") {
					want = idempotency.Key(servertest.Key("k")).Hash()
				}
				if e.KeyHash != want {
					t.Errorf("key hash %q, want %q", e.KeyHash, want)
				}
			})
		}
		t.Run("under a name that is cut is in the log as far as that goes, in whole characters", func(t *testing.T) {
			for _, begin := range []string{"a", "aa"} { // one of them is cut within a character
				path := "/v1/tickets/" + begin + strings.Repeat("ü", 400)
				before := len(s.denied(t))
				if a := s.agent().Send(t, "PUT", path+"/status", `{"status":"closed"}`, key("long")); a.Status != 404 {
					t.Fatal(a)
				}
				all := s.denied(t)
				if len(all) != before+1 {
					t.Fatalf("%d events, want 1", len(all)-before)
				}
				if route := all[before].Route; len(route) < 500 || !strings.HasPrefix("PUT "+path, route) || !utf8.ValidString(route) {
					t.Errorf("%q", route)
				}
			}
		})
		t.Run("is told once where the operation tells it", func(t *testing.T) {
			before := len(s.denied(t))
			create(t, s.agent(), key("mine"), good)
			if answer := create(t, s.agent(), key("mine"), `{"project":"ops","title":"other"}`); answer.Status != 422 || answer.Outcome() != "conflict" {
				t.Fatal(answer)
			}
			if n := len(s.denied(t)) - before; n != 0 {
				t.Errorf("%d events, want 0 beside the conflict", n)
			}
		})
		t.Run("does not fill the log, however often", func(t *testing.T) {
			const loop = 400
			before := len(s.denied(t))
			for range loop { // without looking at the answers, so that many come in the time in which few are told
				request, err := s.globex().Request(t, "POST", "/v1/tickets", strings.NewReader("xxxxxxxxxx"), key("k"))
				if err != nil {
					t.Fatal(err)
				}
				answer, err := http.DefaultClient.Do(request)
				if err != nil {
					t.Fatal(err)
				}
				_, err = io.Copy(io.Discard, answer.Body)
				if err := errors.Join(err, answer.Body.Close()); err != nil {
					t.Fatal(err)
				}
			}
			if n := len(s.denied(t)) - before; n < 100 || n >= loop {
				t.Errorf("%d events of %d refused attempts, want the first ones", n, loop)
			}
		})
	})
}
