package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/einmal/einmal/pkg/idempotency/idemhttp"
	"github.com/einmal/einmal/pkg/problem"
)

// statusClientGone is what log and metrics say of a request whose caller hung up before its answer. Nobody receives it. The
// number is the one nginx made common; any 5xx would look like a failure of ours.
const statusClientGone = 499

// fail answers a request whose handler returned an error. It is the only place where an error becomes a problem document.
// If an answer was begun, nothing is added to it; the error is in the log.
func (s *Server) fail(c echo.Context, err error) {
	r, res := requestOf(c), c.Response()
	if res.Committed {
		r.failure = err
		return
	}
	if errors.Is(err, context.Canceled) && c.Request().Context().Err() != nil {
		r.failure = err
		res.WriteHeader(statusClientGone)
		return
	}
	p, deliberate := problemOf(err, isSafe(c.Request().Method))
	if !deliberate {
		r.failure = err
		// They were meant for the answer that the handler did not come to.
		maps.DeleteFunc(res.Header(), func(name string, _ []string) bool {
			return name != echo.HeaderXRequestID && name != echo.HeaderCacheControl
		})
	}
	if p.Instance == "" {
		p.Instance = instance(c.Request(), p)
	}
	r.code = p.Code
	s.deny(c, p) // before the caller hears it, who then finds it in the events
	p.Write(res)
}

// problemOf returns the problem that says what an error means to the caller, and whether the handler chose it itself.
//
// What it says of the effect must be true. The errors of pkg/database tell whether something was committed. A deadline that
// passed, or a failure nobody foresaw, tells nothing: after such an error a write may have been done, a read has no effect.
func problemOf(err error, safe bool) (p *problem.Problem, deliberate bool) {
	var chosen *problem.Problem
	var routing *echo.HTTPError
	var size *http.MaxBytesError
	if errors.As(err, &chosen) {
		p := *chosen // the caller's may be shared
		return &p, true
	}
	if p, ok := idemhttp.StoreProblem(err); ok {
		return p, false
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return uncertain(problem.New(problem.StoreUnavailable, "The work did not end in time."), safe), false

	case errors.As(err, &size):
		return problem.New(problem.BodyTooLarge, fmt.Sprintf("The limit is %d bytes.", size.Limit)), false

	case errors.As(err, &routing) && codeOf[routing.Code] != "":
		return problem.New(codeOf[routing.Code], ""), false
	}
	return uncertain(problem.New(problem.InternalError, ""), safe), false
}

// codeOf translates what echo itself refuses.
var codeOf = map[int]problem.Code{
	http.StatusNotFound:              problem.RouteNotFound,
	http.StatusMethodNotAllowed:      problem.MethodNotAllowed,
	http.StatusRequestEntityTooLarge: problem.BodyTooLarge,
	http.StatusUnsupportedMediaType:  problem.UnsupportedMediaType,
}

func uncertain(p *problem.Problem, safe bool) *problem.Problem {
	p.Effect = problem.EffectUnknown
	if safe {
		p.Effect = problem.EffectNone
	}
	return p
}

// instance names the occurrence: the operation where there is one, or else the path that was asked for.
func instance(r *http.Request, p *problem.Problem) string {
	if p.OperationID != "" {
		return "/v1/operations/" + p.OperationID
	}
	return r.URL.EscapedPath()
}
