package server

import (
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/einmal/einmal/pkg/problem"
)

// authenticate finds out who is calling. It runs before routing: to a stranger, a path that exists and one that does not
// look the same.
func (s *Server) authenticate(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if s.isPublic(echo.GetPath(c.Request())) {
			return next(c)
		}
		token, sent := bearer(c.Request().Header)
		principal, known := s.identities.find(token)
		if !sent || !known {
			return challenge(c, sent)
		}
		r := requestOf(c)
		r.principal = principal
		r.limiter = s.limits[principal.Account]
		return next(c)
	}
}

// isPublic reports whether a path needs no bearer token.
func (s *Server) isPublic(path string) bool {
	switch path {
	case "/healthz", "/readyz", "/metrics", "/openapi.json", "/docs":
		return true
	}
	for _, below := range []string{"/docs/", "/problems/", "/.well-known/"} {
		if strings.HasPrefix(path, below) {
			return true
		}
	}
	return slices.Contains(s.service.Public, path)
}

// bearer returns the token of the Authorization header, if there is exactly one and it is of that scheme.
func bearer(h http.Header) (token string, ok bool) {
	lines := h.Values(echo.HeaderAuthorization)
	if len(lines) != 1 {
		return "", false
	}
	scheme, token, ok := strings.Cut(lines[0], " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return "", false
	}
	return strings.TrimLeft(token, " "), true
}

// challenge refuses a request without valid credentials and says which are expected (RFC 6750, section 3).
func challenge(c echo.Context, sent bool) error {
	if !sent {
		c.Response().Header().Set(echo.HeaderWWWAuthenticate, `Bearer realm="einmal"`)
		return problem.New(problem.Unauthenticated, "Send one header \"Authorization: Bearer TOKEN\". What there is to ask for stands at /docs, which needs none.")
	}
	c.Response().Header().Set(echo.HeaderWWWAuthenticate, `Bearer realm="einmal", error="invalid_token"`)
	return problem.New(problem.Unauthenticated, "This service does not know the token.")
}
