package server

import (
	"context"
	"strings"

	"github.com/labstack/echo/v4"
	"golang.org/x/time/rate"

	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/idempotency/idemhttp"
	"github.com/einmal/einmal/pkg/problem"
)

const (
	// deniedPerSecond and deniedBurst bound the events that an account's refused attempts may make: a loop of bad requests is seen by its first
	// ones, and must not fill the log that all accounts share. The log lines are complete.
	deniedPerSecond = 20
	deniedBurst     = 200

	// maxDeniedRoute bounds what of a path is kept: those that services have are far shorter.
	maxDeniedRoute = 512
)

// NoteDenied makes note take an event for each write of a known caller that is refused before anything is looked up under its key: without a key
// or with one that is none (400), by its role (403), with a body that can't be taken (400, 413, 415, 422), or about what is not there (404). A caller
// that is not known has no account that it could be told to; too many requests (429) would become as many events.
func (s *Server) NoteDenied(note func(ctx context.Context, e idempotency.Event)) { s.noteDenied = note }

// deny notes a request that is to be answered with a problem, if it is one of those.
func (s *Server) deny(c echo.Context, p *problem.Problem) {
	r, req, header := requestOf(c), c.Request(), c.Response().Header()
	switch {
	case s.noteDenied == nil || isSafe(req.Method) || r.principal.Name == "" || r.failure != nil:
		return
	case p.Status < 400 || p.Status >= 500:
		return
	case p.Code == problem.RouteNotFound || p.Code == problem.MethodNotAllowed || p.Code == problem.RateLimited:
		return // nothing was attempted
	case header.Get(idemhttp.HeaderOutcome) != "":
		return // the executor has told what became of it
	case c.Path() == "/v1/fingerprints":
		return // it claims nothing
	}
	if limiter := s.denials[r.principal.Account]; limiter != nil && !limiter.Allow() {
		s.metrics.unrecorded.Inc()
		return
	}
	e := idempotency.Event{
		Type: idempotency.Denied, Account: r.principal.Account, Principal: r.principal.Name, RequestID: r.id,
		Route: bounded(req.Method + " " + req.URL.Path),
	}
	if key, err := idempotency.ParseKey(req.Header.Values(idemhttp.HeaderKey)); err == nil {
		e.KeyHash = key.Hash()
	}
	e.AgentRun, _ = idemhttp.AgentRun(req)
	s.noteDenied(req.Context(), e)
}

// bounded is as much of a route as is kept, in whole characters: half of one is no text that a database keeps, and would cost every event that is
// written together with it.
func bounded(route string) string {
	if len(route) > maxDeniedRoute {
		return strings.ToValidUTF8(route[:maxDeniedRoute], "")
	}
	return route
}

func newDenials(known identities) limits {
	all := limits{}
	for _, p := range known {
		if all[p.Account] == nil {
			all[p.Account] = rate.NewLimiter(deniedPerSecond, deniedBurst)
		}
	}
	return all
}
