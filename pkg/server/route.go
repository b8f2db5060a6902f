package server

import (
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/einmal/einmal/pkg/problem"
)

// route answers for paths and methods that no handler has. It runs after echo's router, which leaves two things to do: a
// parameter at the end of a route swallows the rest of the path (/v1/tickets/:id also matches /v1/tickets/1/2), and the
// Allow header leaves out HEAD.
func (s *Server) route(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		path := echo.GetPath(c.Request())
		if decoded := c.Request().URL.Path; !utf8.ValidString(decoded) || strings.Contains(decoded, "\x00") {
			return noRoute(c) // nothing can be called so: PostgreSQL has no such text, and would make an error of asking for it
		}
		if strings.Count(c.Path(), "/") != strings.Count(path, "/") && !strings.HasSuffix(c.Path(), "*") {
			return noRoute(c)
		}
		// The router notes the allowed methods where the path exists and the method does not.
		allow, ok := c.Get(echo.ContextKeyHeaderAllow).(string)
		if !ok {
			return next(c)
		}
		c.Response().Header().Set(echo.HeaderAllow, strings.Replace(allow, http.MethodGet, "GET, HEAD", 1))
		if c.Request().Method == http.MethodOptions {
			return c.NoContent(http.StatusNoContent)
		}
		return problem.New(problem.MethodNotAllowed, c.Path()+" answers "+c.Response().Header().Get(echo.HeaderAllow)+".")
	}
}

func noRoute(c echo.Context) error {
	return problem.New(problem.RouteNotFound, "This service has no route "+c.Request().URL.Path+".")
}
