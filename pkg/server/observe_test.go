package server_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/einmal/einmal/pkg/problem"
	"github.com/einmal/einmal/pkg/server"
)

func TestRequestID(t *testing.T) {
	s := start(t, func(e *echo.Echo) {
		e.GET("/v1/id", func(c echo.Context) error { return c.String(200, server.RequestID(c)) }, mayRead)
	})

	t.Run("is the caller's if it is 1 to 128 visible characters", func(t *testing.T) {
		for _, id := range []string{"a", "01890a5d-ac96-774b-bcce-b302099a8057", strings.Repeat("x", 128), `!"#$%&'()*+,-./:;<=>?@[\]^_{|}~`} {
			a := s.send(t, "GET", "/v1/id", asAgent, "X-Request-Id: "+id)
			if a.body != id || a.header.Get("X-Request-Id") != id {
				t.Errorf("%q: handler %q, header %q", id, a.body, a.header.Get("X-Request-Id"))
			}
		}
	})

	t.Run("is a new UUIDv7 otherwise", func(t *testing.T) {
		v7 := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
		seen := map[string]bool{}
		for _, headers := range [][]string{
			nil,
			{"X-Request-Id: "},
			{"X-Request-Id: " + strings.Repeat("x", 129)},
			{"X-Request-Id: a b"},
			{"X-Request-Id: na\xc3\xafve"},
			{"X-Request-Id: one", "X-Request-Id: two"},
		} {
			a := s.send(t, "GET", "/v1/id", append(headers, asAgent)...)
			if !v7.MatchString(a.body) || a.header.Get("X-Request-Id") != a.body || seen[a.body] {
				t.Errorf("%q: handler %q, header %q", headers, a.body, a.header.Get("X-Request-Id"))
			}
			seen[a.body] = true
		}
	})

	t.Run("is on refusals too", func(t *testing.T) {
		if a := s.send(t, "GET", "/v1/id", "X-Request-Id: stranger"); a.status != 401 || a.header.Get("X-Request-Id") != "stranger" {
			t.Errorf("%d %q", a.status, a.header.Get("X-Request-Id"))
		}
	})
}

// RB-101: a panic is one request's misfortune.
func TestPanics(t *testing.T) {
	s := start(t, func(e *echo.Echo) {
		e.POST("/v1/panic", func(echo.Context) error { panic([]string{"cannot", "be", "compared"}) }, mayWrite)
		e.POST("/v1/abort", func(echo.Context) error { panic(http.ErrAbortHandler) }, mayWrite)
		e.POST("/v1/tickets", ok, mayWrite)
	})

	t.Run("are answered with 500, twenty times, and then all is well", func(t *testing.T) {
		for range 20 {
			a := s.send(t, "POST", "/v1/panic", asAgent, "X-Request-Id: panicked")
			if p := a.problem(t); p.Code != problem.InternalError || p.Detail != "" || p.Effect != problem.EffectUnknown {
				t.Fatalf("%d %s", a.status, a.body)
			}
		}
		if a := s.send(t, "POST", "/v1/tickets", asAgent); a.status != 200 {
			t.Errorf("afterwards: %d", a.status)
		}
		line := s.log.request(t, "panicked")
		if line["error"] != "panic: [cannot be compared]" || line["level"] != "ERROR" || !strings.Contains(line["stack"].(string), "observe_test.go") {
			t.Errorf("the log says %v", line)
		}
	})

	t.Run("that ask for the connection to be cut get that", func(t *testing.T) {
		if a, err := s.try(t.Context(), http.DefaultClient, "POST", "/v1/abort", asAgent); err == nil {
			t.Errorf("%d %q", a.status, a.body)
		}
		if strings.Contains(s.log.String(), "abort Handler") {
			t.Errorf("and are not logged as a failure:\n%s", s.log)
		}
	})
}

func TestTheLog(t *testing.T) {
	s := start(t, func(e *echo.Echo) {
		e.POST("/v1/tickets/:id", func(c echo.Context) error {
			c.Response().Header().Set("Operation-Id", "op_1")
			c.Response().Header().Set("Idempotency-Outcome", "replayed")
			return c.String(201, "body-of-the-answer")
		}, mayWrite)
		e.GET("/v1/tickets/:id", ok, mayRead)
	})

	t.Run("says who did what and how it ended", func(t *testing.T) {
		s.send(t, "POST", "/v1/tickets/tkt_1?secret=query", asAgent, "Idempotency-Key: secret-key", "X-Request-Id: write")
		line := s.log.request(t, "write")
		for name, want := range map[string]any{
			"level": "INFO", "msg": "request", "service": "tickets", "method": "POST", "route": "/v1/tickets/:id", "path": "/v1/tickets/tkt_1",
			"status": 201.0, "account": "acme", "principal": "demo-agent", "operation_id": "op_1", "outcome": "replayed",
		} {
			if line[name] != want {
				t.Errorf("%s: %v, want %v", name, line[name], want)
			}
		}
	})

	t.Run("mentions reads only at debug", func(t *testing.T) {
		s.send(t, "GET", "/v1/tickets/1", asAgent, "X-Request-Id: read")
		if line := s.log.request(t, "read"); line["level"] != "DEBUG" {
			t.Errorf("%v", line)
		}
	})

	t.Run("mentions refusals at info", func(t *testing.T) {
		s.send(t, "GET", "/v1/nothing", asAgent, "X-Request-Id: refused")
		if line := s.log.request(t, "refused"); line["level"] != "INFO" || line["code"] != "route-not-found" || line["route"] != "none" {
			t.Errorf("%v", line)
		}
	})

	t.Run("holds no token, key, query or body", func(t *testing.T) {
		for _, secret := range []string{"Bearer", "secret-key", "secret=query", "body-of-the-answer"} {
			if strings.Contains(s.log.String(), secret) {
				t.Errorf("%s is in the log:\n%s", secret, s.log)
			}
		}
	})
}
