package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
	"golang.org/x/time/rate"

	"github.com/einmal/einmal/pkg/idempotency/idemhttp"
	"github.com/einmal/einmal/pkg/problem"
)

// request is what the server knows about a request. It lives in echo's context, which echo uses again after the handler
// has returned: nothing may keep either.
type request struct {
	id        string
	principal Principal // zero on public paths
	limiter   *rate.Limiter
	guarded   bool         // Require let it pass
	code      problem.Code // of the problem it was answered with
	failure   error        // what the problem does not say
}

const requestKey = "einmal.request"

func requestOf(c echo.Context) *request {
	return c.Get(requestKey).(*request)
}

// RequestID returns the id of the request, the caller's or ours.
func RequestID(c echo.Context) string {
	return requestOf(c).id
}

// readDeadline bounds a read: what takes longer is not slow but stuck, and callers commonly give up soon after. Whoever
// prefers to wait for an operation waits as long on top of it.
const readDeadline = 5 * time.Second

// observe is the outermost layer: whatever happens inside, the request gets one answer, one log line and one count.
func (s *Server) observe(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		began := time.Now()
		s.inFlight.Add(1)
		defer s.inFlight.Add(-1)

		r := &request{id: requestID(c.Request().Header)}
		c.Set(requestKey, r)
		c.Response().Header().Set(echo.HeaderXRequestID, r.id)
		c.Response().Header().Set(echo.HeaderCacheControl, "no-store")

		if isSafe(c.Request().Method) {
			// A read ends soon, and by our clock: a database that has gone silent must not hold connections, and a caller that has
			// closed its side of the connection, which net/http takes for a departure, still reads the answer.
			ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Request().Context()), readDeadline+idemhttp.PreferredWait(c.Request().Header))
			defer cancel()
			c.SetRequest(c.Request().WithContext(ctx))
		}

		err := protect(next, c)
		begun := c.Response().Committed
		if err != nil {
			s.fail(c, err)
		}
		s.record(c, time.Since(began))
		if isPanic(err) && begun {
			// Half an answer must not look like a whole one: net/http cuts the connection and logs nothing.
			panic(http.ErrAbortHandler)
		}
		return nil
	}
}

// requestID takes over a caller's X-Request-Id if it is 1 to 128 characters of '!' to '~', so that it can neither split a
// log line nor a header, and makes a UUIDv7 otherwise.
func requestID(h http.Header) string {
	lines := h.Values(echo.HeaderXRequestID)
	if len(lines) == 1 && len(lines[0]) >= 1 && len(lines[0]) <= 128 && isVisible(lines[0]) {
		return lines[0]
	}
	return uuid.Must(uuid.NewV7()).String() // it fails when the system has no random numbers
}

func isVisible(s string) bool {
	for _, b := range []byte(s) {
		if b < '!' || b > '~' {
			return false
		}
	}
	return true
}

// panicked is a panic on its way to becoming a 500.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("panic: %v", p.value) }

func isPanic(err error) bool {
	var p *panicked
	return errors.As(err, &p)
}

// protect turns a panic of the handler into an error, except the one by which a handler asks net/http to cut the connection.
func protect(next echo.HandlerFunc, c echo.Context) (err error) {
	defer func() {
		switch value := recover(); value {
		case nil:
		case http.ErrAbortHandler:
			panic(value)
		default:
			err = &panicked{value, debug.Stack()}
		}
	}()
	return next(c)
}

// record writes the request's log line and counts it. Writes and refusals are logged at info, reads at debug: there are many
// of them and they change nothing. There is no token, no key and no body in it, and no query.
func (s *Server) record(c echo.Context, took time.Duration) {
	r, req, res := requestOf(c), c.Request(), c.Response()
	route := c.Path()
	if r.code == problem.RouteNotFound || r.code == problem.Unauthenticated {
		route = "none" // strangers must not be able to make series
	}
	s.metrics.count(route, req.Method, res.Status, took)

	level := slog.LevelInfo
	switch {
	case res.Status == statusClientGone: // what it wanted to know, it can ask again
	case res.Status == http.StatusServiceUnavailable:
		level = slog.LevelWarn // it is known what this is, and it passes
	case res.Status >= 500 || isPanic(r.failure):
		level = slog.LevelError
	case r.failure != nil:
		level = slog.LevelWarn // something went wrong that the status does not tell
	case res.Status < 400 && isSafe(req.Method):
		level = slog.LevelDebug
	}
	log := s.service.Log
	if !log.Enabled(req.Context(), level) {
		return
	}
	attrs := make([]slog.Attr, 0, 16)
	attrs = append(attrs,
		slog.String("service", s.service.Name),
		slog.String("request_id", r.id),
		slog.String("method", req.Method),
		slog.String("route", route),
		slog.String("path", req.URL.Path),
		slog.Int("status", res.Status),
		slog.Float64("ms", float64(took.Microseconds())/1000),
	)
	attrs = appendKnown(attrs, "account", r.principal.Account)
	attrs = appendKnown(attrs, "principal", r.principal.Name)
	attrs = appendKnown(attrs, "operation_id", res.Header().Get("Operation-Id"))
	attrs = appendKnown(attrs, "outcome", res.Header().Get("Idempotency-Outcome"))
	attrs = appendKnown(attrs, "code", string(r.code))
	if r.failure != nil {
		attrs = append(attrs, slog.String("error", r.failure.Error()))
		if p := (*panicked)(nil); errors.As(r.failure, &p) {
			attrs = append(attrs, slog.String("stack", string(p.stack)))
		}
	}
	log.LogAttrs(req.Context(), level, "request", attrs...)
}

func appendKnown(attrs []slog.Attr, name, value string) []slog.Attr {
	if value == "" {
		return attrs
	}
	return append(attrs, slog.String(name, value))
}

// isSafe reports whether a method asks for no change (RFC 9110, section 9.2.1).
func isSafe(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}
