package server_test

import (
	"strconv"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/einmal/einmal/pkg/problem"
	"github.com/einmal/einmal/pkg/server"
)

func TestRoles(t *testing.T) {
	s := start(t, func(e *echo.Echo) {
		e.GET("/v1/tickets", ok, mayRead)
		e.POST("/v1/tickets", ok, mayWrite)
		e.POST("/v1/decisions", ok, server.Require(server.Approver))
		e.GET("/v1/whoami", func(c echo.Context) error {
			p := server.PrincipalOf(c)
			return c.String(200, p.Name+" of "+p.Account)
		}, mayRead)
		e.GET("/v1/unguarded", func(c echo.Context) error { return c.String(200, server.PrincipalOf(c).Account) })
		e.GET("/.well-known/guarded", ok, mayRead)
	})

	t.Run("are what the contract says", func(t *testing.T) {
		for token, want := range map[string][3]int{
			"demo-agent":           {200, 200, 403},
			"demo-agent-2":         {200, 200, 403},
			"demo-approver":        {200, 403, 200},
			"demo-operator":        {200, 200, 403},
			"demo-globex":          {200, 200, 403},
			"demo-globex-operator": {200, 200, 403},
		} {
			bearer := "Authorization: Bearer " + token
			got := [3]int{
				s.send(t, "GET", "/v1/tickets", bearer).status,
				s.send(t, "POST", "/v1/tickets", bearer).status,
				s.send(t, "POST", "/v1/decisions", bearer).status,
			}
			if got != want {
				t.Errorf("%s: read, write, decide: %v, want %v", token, got, want)
			}
		}
	})

	t.Run("refuse with a problem that leaves the key alone", func(t *testing.T) {
		p := s.send(t, "POST", "/v1/tickets", asApprover).problem(t)
		if p.Code != problem.Forbidden || p.Retry != problem.RetrySameKey || p.Effect != problem.EffectNone {
			t.Errorf("%+v", p)
		}
	})

	t.Run("tell the handler who is calling", func(t *testing.T) {
		if a := s.send(t, "GET", "/v1/whoami", "Authorization: Bearer demo-globex"); a.body != "demo-globex of globex" {
			t.Errorf("%q", a.body)
		}
	})

	t.Run("come after the route: what does not exist is forbidden to nobody", func(t *testing.T) {
		if a := s.send(t, "POST", "/v1/nothing", asApprover); a.status != 404 {
			t.Errorf("unknown route: %d", a.status)
		}
		if a := s.send(t, "DELETE", "/v1/tickets", asApprover); a.status != 405 {
			t.Errorf("unknown method: %d", a.status)
		}
	})

	t.Run("cannot be forgotten: an unguarded route has no account to answer for", func(t *testing.T) {
		if a := s.send(t, "GET", "/v1/unguarded", asAgent); a.status != 500 {
			t.Errorf("%d %s", a.status, a.body)
		}
	})

	t.Run("refuse on a public path, where nobody was asked who they are", func(t *testing.T) {
		if a := s.send(t, "GET", "/.well-known/guarded", asAgent); a.status != 401 {
			t.Errorf("%d", a.status)
		}
	})
}

func TestRateLimit(t *testing.T) {
	s := start(t, func(e *echo.Echo) {
		e.POST("/v1/tickets", ok, mayWrite)
	}, func(config *server.Config, _ *server.Service) {
		config.RateLimit, config.RateBurst = 0.001, 3 // the next one is due in a quarter of an hour
	})

	for range 3 {
		if a := s.send(t, "POST", "/v1/tickets", asAgent); a.status != 200 {
			t.Fatalf("within the burst: %d", a.status)
		}
	}

	t.Run("refuses what is too much and says how long to wait", func(t *testing.T) {
		a := s.send(t, "POST", "/v1/tickets", asAgent)
		p := a.problem(t)
		seconds, err := strconv.Atoi(a.header.Get("Retry-After"))
		if p.Code != problem.RateLimited || a.status != 429 || err != nil || seconds < 900 || seconds > 1000 || p.RetryAfterSeconds != seconds {
			t.Errorf("%d %s, Retry-After %q, retry_after_seconds %d", a.status, p.Code, a.header.Get("Retry-After"), p.RetryAfterSeconds)
		}
		if p.Retry != problem.RetrySameKey || p.NextAction != problem.NextRetrySameKey {
			t.Errorf("retry %s, next action %s", p.Retry, p.NextAction)
		}
	})

	t.Run("counts the whole account and no other", func(t *testing.T) {
		if a := s.send(t, "POST", "/v1/tickets", "Authorization: Bearer demo-agent-2"); a.status != 429 {
			t.Errorf("the account's other agent: %d", a.status)
		}
		if a := s.send(t, "POST", "/v1/tickets", "Authorization: Bearer demo-globex"); a.status != 200 {
			t.Errorf("another account: %d", a.status)
		}
	})

	t.Run("comes after the role", func(t *testing.T) {
		if a := s.send(t, "POST", "/v1/tickets", asApprover); a.status != 403 {
			t.Errorf("%d", a.status)
		}
	})

	t.Run("does not count what is refused before", func(t *testing.T) {
		for range 10 {
			if a := s.send(t, "POST", "/v1/tickets", "Authorization: Bearer nobody"); a.status != 401 {
				t.Errorf("%d", a.status)
			}
			if a := s.send(t, "GET", "/healthz", asAgent); a.status != 200 {
				t.Errorf("%d", a.status)
			}
		}
	})

	t.Run("is off at 0", func(t *testing.T) {
		s := start(t, func(e *echo.Echo) { e.GET("/v1/tickets", ok, mayRead) })
		for range 200 {
			if a := s.send(t, "GET", "/v1/tickets", asAgent); a.status != 200 {
				t.Fatalf("%d", a.status)
			}
		}
	})
}

func TestRequireOfNobodyIsAMistake(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a route that nobody may call was accepted")
		}
	}()
	server.Require()
}
