package idemhttp

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"

	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/problem"
)

// Route is a route of a service that changes something: every such route has an operation type and a command.
type Route struct {
	Method  string
	Path    string         // echo's pattern: /v1/tickets/:id/comments
	Type    string         // of the operation, as in the catalogue
	Command func() Command // a new command, with its defaults
	Handler echo.HandlerFunc

	// Complete adds to a decoded command what its body leaves to the resource in its path: the currency that an amount is in. It only
	// reads what never changes. Its errors are *problem.Problem, or the store's. Nil: the body says it all.
	Complete func(ctx context.Context, account string, param func(name string) string, command Command) error
}

// param reads the parameters of a concrete path that the route matches.
func (r Route) param(path string) func(name string) string {
	concrete := strings.Split(path, "/")
	return func(name string) string {
		i := slices.Index(strings.Split(r.Path, "/"), ":"+name)
		if i < 0 {
			return ""
		}
		value, _ := url.PathUnescape(concrete[i]) // decodePath has seen that it can be
		return value
	}
}

// matches reports whether a concrete path is one of the route's.
func (r Route) matches(method, path string) bool {
	pattern, concrete := strings.Split(r.Path, "/"), strings.Split(path, "/")
	if r.Method != method || len(pattern) != len(concrete) {
		return false
	}
	for i, segment := range pattern {
		if strings.HasPrefix(segment, ":") && concrete[i] != "" {
			continue
		}
		if segment != concrete[i] {
			return false
		}
	}
	return true
}

// fingerprintCommand is the body of POST /v1/fingerprints.
type fingerprintCommand struct {
	Method string         `json:"method"`
	Path   string         `json:"path"`
	Body   jsontext.Value `json:"body"`
}

func (f *fingerprintCommand) Validate() (violations []problem.Violation) {
	if f.Body.Kind() != '{' {
		violations = append(violations, problem.Violation{Pointer: "/body", Detail: "must be the object that would be sent"})
	}
	return violations
}

// Fingerprints answers POST /v1/fingerprints {method, path, body} with the fingerprint that such a request would have, and the
// canonical text that it is the hash of. It claims nothing and needs no key.
func Fingerprints(routes []Route, caller func(echo.Context) Caller) echo.HandlerFunc {
	return func(c echo.Context) error {
		body, err := readBody(c.Request())
		if err != nil {
			return err
		}
		d := &decoder{}
		if err := d.scan(body); err != nil {
			return err
		}
		var asked fingerprintCommand
		d.command(body, &asked, "")
		var command Command
		var asks Route
		path, ok := decodePath(asked.Path)
		for _, route := range routes {
			if ok && route.matches(asked.Method, asked.Path) {
				command, asks = route.Command(), route
			}
		}
		if command == nil {
			d.violate("/path", "is not, with this method, a route of this service that changes something")
			return d.problem()
		}
		if asked.Body.Kind() == '{' { // else it has been told, as /body or in another case
			d.command(asked.Body, command, "/body")
		}
		if err := d.problem(); err != nil {
			return err
		}
		if asks.Complete != nil {
			if err := asks.Complete(c.Request().Context(), caller(c).Account, asks.param(asked.Path), command); err != nil {
				return inBody(err)
			}
		}
		canonical, fingerprint, err := fingerprintOf(idempotency.Command{
			Account: caller(c).Account, Method: asked.Method, Path: path, Body: command,
		})
		if err != nil {
			return err
		}
		return writeJSON(c, http.StatusOK, struct {
			Fingerprint idempotency.Fingerprint `json:"fingerprint"`
			Version     string                  `json:"version"`
			Canonical   string                  `json:"canonical"`
		}{fingerprint, fingerprint.Version(), string(canonical)})
	}
}

// inBody moves the pointers of a problem to where the command stands in the body of a request for its fingerprint.
func inBody(err error) error {
	var p *problem.Problem
	if !errors.As(err, &p) {
		return err
	}
	moved := *p
	moved.Errors = slices.Clone(p.Errors)
	for i := range moved.Errors {
		moved.Errors[i].Pointer = "/body" + moved.Errors[i].Pointer
	}
	return &moved
}

// decodePath is what a path in a request line means: Call.Request has it from URL.Path, which is decoded.
func decodePath(path string) (decoded string, ok bool) {
	decoded, err := url.PathUnescape(path)
	return decoded, err == nil && utf8.ValidString(decoded) && !strings.ContainsAny(path, "?#")
}

func fingerprintOf(command idempotency.Command) ([]byte, idempotency.Fingerprint, error) {
	canonical, err := command.Canonical()
	if err != nil {
		return nil, "", err
	}
	fingerprint, err := command.Fingerprint()
	return canonical, fingerprint, err
}
