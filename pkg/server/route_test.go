package server_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/labstack/echo/v4"

	"github.com/einmal/einmal/pkg/catalogue"
	"github.com/einmal/einmal/pkg/problem"
)

func ticketRoutes(e *echo.Echo) {
	e.POST("/v1/tickets", ok, mayWrite)
	e.GET("/v1/tickets", ok, mayRead)
	e.GET("/v1/tickets/:id", ok, mayRead)
	e.PUT("/v1/tickets/:id/status", ok, mayWrite)
	e.POST("/v1/fingerprints", ok, mayRead)
}

func TestRoutes(t *testing.T) {
	s := start(t, ticketRoutes)

	t.Run("that do not exist are 404", func(t *testing.T) {
		for _, path := range []string{"/", "/v1", "/v1/", "/v1/nothing", "/v1/tickets/", "/v1/tickets/1/2", "/v1/tickets/1/status/x", "/V1/tickets", "/v1/tickets/1/comments"} {
			a := s.send(t, "POST", path, asAgent)
			if p := a.problem(t); p.Code != problem.RouteNotFound || a.status != 404 || p.Instance != path {
				t.Errorf("POST %s: %d %s, instance %q", path, a.status, p.Code, p.Instance)
			}
		}
	})

	t.Run("that exist for other methods are 405 with Allow", func(t *testing.T) {
		for request, want := range map[[2]string][]string{
			{"DELETE", "/v1/tickets"}:       {"GET", "HEAD", "OPTIONS", "POST"},
			{"POST", "/v1/tickets/1"}:       {"GET", "HEAD", "OPTIONS"},
			{"GET", "/v1/tickets/1/status"}: {"OPTIONS", "PUT"},
			{"HEAD", "/v1/fingerprints"}:    {"OPTIONS", "POST"},
			{"BREW", "/v1/tickets"}:         {"GET", "HEAD", "OPTIONS", "POST"},
		} {
			a := s.send(t, request[0], request[1], asAgent)
			if a.status != 405 {
				t.Errorf("%v: %d", request, a.status)
			}
			if diff := cmp.Diff(want, allowed(a)); diff != "" {
				t.Errorf("%v: Allow (-want +got)\n%s", request, diff)
			}
			if request[0] != "HEAD" && a.problem(t).Code != problem.MethodNotAllowed {
				t.Errorf("%v: %s", request, a.body)
			}
		}
	})

	t.Run("answer OPTIONS with what they allow", func(t *testing.T) {
		a := s.send(t, "OPTIONS", "/v1/tickets", asAgent)
		if diff := cmp.Diff([]string{"GET", "HEAD", "OPTIONS", "POST"}, allowed(a)); a.status != 204 || a.body != "" || diff != "" {
			t.Errorf("%d %q\n%s", a.status, a.body, diff)
		}
		if a := s.send(t, "OPTIONS", "/v1/nothing", asAgent); a.status != 404 {
			t.Errorf("of nothing: %d", a.status)
		}
	})

	t.Run("answer HEAD like GET, without the body", func(t *testing.T) {
		for _, path := range []string{"/v1/tickets", "/v1/tickets/1", "/healthz", "/problems/not-found", "/v1/nothing"} {
			get, head := s.send(t, "GET", path, asAgent), s.send(t, "HEAD", path, asAgent)
			if head.status != get.status || head.body != "" || head.header.Get("Content-Type") != get.header.Get("Content-Type") {
				t.Errorf("%s: HEAD %d %q %q, GET %d %q", path, head.status, head.header.Get("Content-Type"), head.body, get.status, get.header.Get("Content-Type"))
			}
			if got, want := head.header.Get("Content-Length"), get.header.Get("Content-Length"); got != want {
				t.Errorf("%s: HEAD says %s bytes, GET %s", path, got, want)
			}
		}
	})
}

func allowed(a answer) []string {
	methods := strings.Split(a.header.Get("Allow"), ", ")
	slices.Sort(methods)
	return methods
}

// Together with the catalogue: a service knows at its start which of its writes nobody has thought about.
func TestRoutesCanBeCheckedAgainstTheCatalogue(t *testing.T) {
	s := start(t, ticketRoutes)
	// What a group registers for unknown paths is no write.
	s.Echo().Group("/v1/group", func(next echo.HandlerFunc) echo.HandlerFunc { return next })

	err := catalogue.CheckRoutes(s.Routes(), map[string]string{"POST /v1/tickets": catalogue.TicketCreate}, catalogue.Exempt)
	if err == nil || !strings.Contains(err.Error(), "PUT /v1/tickets/:id/status writes and has no operation type") || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v; want one about PUT /v1/tickets/:id/status", err)
	}
}

func TestEveryAnswer(t *testing.T) {
	s := start(t, ticketRoutes)
	for _, request := range [][2]string{
		{"GET", "/v1/tickets"},
		{"POST", "/v1/tickets"},
		{"GET", "/v1/nothing"},
		{"BREW", "/v1/tickets"},
		{"OPTIONS", "/v1/tickets"},
		{"HEAD", "/v1/tickets"},
		{"GET", "/healthz"},
		{"GET", "/problems/not-found"},
	} {
		a := s.send(t, request[0], request[1], asAgent, "Accept-Encoding: gzip", "X-Request-Id: mine")
		if a.header.Get("Cache-Control") != "no-store" || a.header.Get("Content-Encoding") != "" || a.header.Get("X-Request-Id") != "mine" {
			t.Errorf("%v: %v", request, a.header)
		}
	}
	if a := s.send(t, "GET", "/metrics", "Accept-Encoding: gzip"); a.header.Get("Content-Encoding") != "" {
		t.Error("/metrics is compressed")
	}
	if a := s.send(t, "GET", "/v1/tickets"); a.status != 401 || a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("401 with Cache-Control %q", a.header.Get("Cache-Control"))
	}
}
