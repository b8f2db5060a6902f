package server_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/einmal/einmal/pkg/server"
)

func TestReadiness(t *testing.T) {
	var away atomic.Bool
	s := start(t, nil, func(_ *server.Config, service *server.Service) {
		service.Checks = []server.Check{
			{Name: "migrations", Run: func(context.Context) error { return nil }},
			{Name: "database", Run: func(ctx context.Context) error {
				if !away.Load() {
					return nil
				}
				if _, bounded := ctx.Deadline(); !bounded {
					t.Error("a check may hang for ever")
				}
				return errors.New("dial db.internal:5432: refused")
			}},
		}
	})

	t.Run("is 200 while every check passes", func(t *testing.T) {
		if a := s.send(t, "GET", "/readyz"); a.status != 200 || strings.TrimSpace(a.body) != `{"status":"ready"}` {
			t.Errorf("%d %s", a.status, a.body)
		}
	})

	t.Run("is 503 with the names of the checks that fail, and the reasons in the log alone", func(t *testing.T) {
		away.Store(true)
		a := s.send(t, "GET", "/readyz")
		if a.status != 503 || strings.TrimSpace(a.body) != `{"status":"not ready","failing":["database"]}` {
			t.Errorf("%d %s", a.status, a.body)
		}
		if !strings.Contains(s.log.String(), "dial db.internal:5432: refused") {
			t.Errorf("the log does not say why:\n%s", s.log)
		}
		if a := s.send(t, "GET", "/healthz"); a.status != 200 {
			t.Errorf("/healthz depends on the database: %d", a.status)
		}
	})

	t.Run("is 200 again afterwards", func(t *testing.T) {
		away.Store(false)
		if a := s.send(t, "GET", "/readyz"); a.status != 200 {
			t.Errorf("%d %s", a.status, a.body)
		}
	})
}

func TestMetrics(t *testing.T) {
	s := start(t, func(e *echo.Echo) {
		e.GET("/v1/tickets/:id", ok, mayRead)
	})
	for range 3 {
		s.send(t, "GET", "/v1/tickets/tkt_1", asAgent)
	}
	s.send(t, "GET", "/v1/nothing/1", asAgent)
	s.send(t, "GET", "/v1/nothing/2")
	s.send(t, "BREW", "/v1/tickets/1", asAgent)
	text := s.send(t, "GET", "/metrics").body

	t.Run("count requests by route pattern, method and status", func(t *testing.T) {
		for _, want := range []string{
			`einmal_http_request_duration_seconds_count{method="GET",route="/v1/tickets/:id",service="tickets",status="200"} 3`,
			`einmal_http_request_duration_seconds_count{method="GET",route="none",service="tickets",status="404"} 1`,
			`einmal_http_request_duration_seconds_count{method="GET",route="none",service="tickets",status="401"} 1`,
			`einmal_http_request_duration_seconds_count{method="other",route="/v1/tickets/:id",service="tickets",status="405"} 1`,
			`einmal_http_requests_in_flight{service="tickets"} 1`, // the one that asks
			`go_goroutines`,
		} {
			if !strings.Contains(text, want) {
				t.Errorf("no %s", want)
			}
		}
	})

	t.Run("have no series for what callers make up", func(t *testing.T) {
		if made := regexp.MustCompile(`.*(nothing|BREW|tkt_1).*`).FindString(text); made != "" {
			t.Error(made)
		}
	})
}
