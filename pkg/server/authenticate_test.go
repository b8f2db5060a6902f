package server_test

import (
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/einmal/einmal/pkg/problem"
	"github.com/einmal/einmal/pkg/server"
)

func TestAuthentication(t *testing.T) {
	s := start(t, func(e *echo.Echo) {
		e.GET("/v1/tickets", ok, mayRead)
		e.POST("/v1/hooks/psp", ok)
		e.POST("/v1/hooks/alertmanager", ok, mayWrite)
	}, func(_ *server.Config, service *server.Service) { service.Public = []string{"/v1/hooks/psp"} })

	t.Run("refuses whoever does not prove who they are, and says how", func(t *testing.T) {
		for what, headers := range map[string][]string{
			"no header":       nil,
			"empty header":    {"Authorization: "},
			"another scheme":  {"Authorization: Basic ZGVtby1hZ2VudDo="},
			"scheme alone":    {"Authorization: Bearer"},
			"two headers":     {asAgent, asAgent},
			"unknown token":   {"Authorization: Bearer demo-agent-3"},
			"empty token":     {"Authorization: Bearer  "},
			"more than token": {asAgent + " x"},
			"other case":      {"Authorization: Bearer DEMO-AGENT"},
		} {
			a := s.send(t, "GET", "/v1/tickets", headers...)
			p := a.problem(t)
			if p.Code != problem.Unauthenticated || a.status != 401 || p.Effect != problem.EffectNone {
				t.Errorf("%s: %d %s, effect %s", what, a.status, p.Code, p.Effect)
			}
			if !strings.HasPrefix(a.header.Get("WWW-Authenticate"), `Bearer realm="einmal"`) {
				t.Errorf("%s: WWW-Authenticate %q", what, a.header.Get("WWW-Authenticate"))
			}
		}
	})

	t.Run("accepts a known token, whatever the case of the scheme", func(t *testing.T) {
		for _, header := range []string{asAgent, "Authorization: bearer demo-agent", "authorization: BEARER demo-agent"} {
			if a := s.send(t, "GET", "/v1/tickets", header); a.status != 200 {
				t.Errorf("%s: %d %s", header, a.status, a.body)
			}
		}
	})

	t.Run("does not tell a stranger which routes exist", func(t *testing.T) {
		known := s.send(t, "GET", "/v1/tickets")
		for _, other := range [][2]string{{"GET", "/v1/nothing"}, {"DELETE", "/v1/tickets"}, {"OPTIONS", "/v1/tickets"}, {"GET", "/"}, {"POST", "/healthzz"}, {"GET", "//problems/not-found"}} {
			a := s.send(t, other[0], other[1])
			if a.status != 401 {
				t.Errorf("%v: %d", other, a.status)
			}
			if got, want := a.problem(t).Detail, known.problem(t).Detail; got != want {
				t.Errorf("%v: detail %q, but %q where the route exists", other, got, want)
			}
			if a.header.Get("Allow") != "" {
				t.Errorf("%v: Allow %q", other, a.header.Get("Allow"))
			}
		}
	})

	t.Run("asks nobody on public paths", func(t *testing.T) {
		for path, want := range map[string]int{
			"/healthz": 200, "/readyz": 200, "/metrics": 200, "/problems/not-found": 200, "/problems/nonsense": 404,
			"/openapi.json": 404, "/docs": 404, "/.well-known/idempotency-policy": 404, // nothing is published here
		} {
			if a := s.send(t, "GET", path); a.status != want {
				t.Errorf("%s: %d, want %d", path, a.status, want)
			}
		}
		if a := s.send(t, "POST", "/healthz"); a.status != 405 {
			t.Errorf("POST /healthz: %d, want 405", a.status)
		}
	})

	t.Run("leaves only those hooks open that prove themselves otherwise", func(t *testing.T) {
		if a := s.send(t, "POST", "/v1/hooks/psp"); a.status != 200 {
			t.Errorf("psp: %d", a.status)
		}
		if a := s.send(t, "POST", "/v1/hooks/alertmanager"); a.status != 401 {
			t.Errorf("alertmanager without a token: %d", a.status)
		}
	})
}
