package servertest_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/einmal/einmal/pkg/problem"
	"github.com/einmal/einmal/pkg/server"
	"github.com/einmal/einmal/pkg/server/servertest"
)

const document = `
openapi: 3.1.0
info: {title: things, version: v1}
security: [{token: []}]
paths:
  /v1/things:
    post:
      operationId: createThing
      parameters: [{name: Idempotency-Key, in: header, required: true, schema: {type: string}}]
      requestBody:
        required: true
        content: {application/json: {schema: {type: object, required: [name], additionalProperties: false, properties: {name: {type: string}}}}}
      responses:
        '201':
          description: Created.
          headers: {X-Request-Id: &h {schema: {type: string}}, Cache-Control: *h, Location: {required: true, schema: {type: string}}}
          content: {application/json: {schema: {type: object, required: [id], properties: {id: {type: integer}}}}}
        '422':
          description: Invalid.
          headers: {X-Request-Id: *h, Cache-Control: *h}
          content: {application/problem+json: {schema: {$ref: '#/components/schemas/Problem'}}}
components:
  securitySchemes: {token: {type: http, scheme: bearer}}
  schemas: {Problem: {type: object, required: [code], properties: {code: {type: string}}}}
`

// report notes what a test would have failed with.
type report struct {
	testing.TB
	errors []string
}

func (r *report) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}
func (r *report) Error(args ...any) { r.errors = append(r.errors, fmt.Sprint(args...)) }

// Each answer that is not as the document has it is found.
func TestExchangesAreHeldToTheDocument(t *testing.T) {
	var answer func(c echo.Context) error
	secrets := servertest.KeepSecrets(t)
	srv, err := server.New(server.Config{Listen: "127.0.0.1:0", ShutdownGrace: 5 * time.Second, TokensFile: servertest.Tokens(t)}, server.Service{Name: "things", Log: secrets.Log})
	if err != nil {
		t.Fatal(err)
	}
	srv.Echo().POST("/v1/things", func(c echo.Context) error { return answer(c) }, server.Require(server.Writers...))
	srv.Echo().GET("/v1/secret", func(c echo.Context) error { return c.NoContent(http.StatusOK) }, server.Require(server.Readers...))
	if err := srv.PublishOpenAPI([]byte(document)); err != nil {
		t.Fatal(err)
	}
	s := servertest.Start(t, srv, secrets)

	created := func(c echo.Context) error {
		c.Response().Header().Set("Location", "/v1/things/1")
		return c.JSONBlob(http.StatusCreated, []byte(`{"id":1}`))
	}
	const key, good = "Idempotency-Key: k", `{"name":"a"}`
	for name, c := range map[string]struct {
		method, path, body string
		headers            []string
		answer             func(echo.Context) error
		want               string // part of what is wrong; empty: nothing is
	}{
		"as it should be":       {"POST", "/v1/things", good, []string{key}, created, ""},
		"a refusal of the same": {"POST", "/v1/things", good, []string{key}, func(echo.Context) error { return problem.Invalid() }, ""},
		"a refusal of a wrong request": {
			"POST", "/v1/things", `{"x":1}`, nil,
			func(echo.Context) error { return problem.Invalid() }, "",
		},
		"a wrong body that succeeds":        {"POST", "/v1/things", `{"x":1}`, []string{key}, created, "a wrong request succeeded"},
		"a missing parameter that succeeds": {"POST", "/v1/things", good, nil, created, "a wrong request succeeded"},
		"another media type that succeeds":  {"POST", "/v1/things", good, []string{key, "Content-Type: text/plain"}, created, "a wrong request succeeded"},
		"a status that is not in it":        {"POST", "/v1/things", good, []string{key}, func(c echo.Context) error { return c.NoContent(http.StatusAccepted) }, "status is not supported"},
		"a problem that is not in it":       {"POST", "/v1/things", good, []string{key}, func(echo.Context) error { return problem.New(problem.InternalError, "") }, "status is not supported"},
		"a member of another type": {"POST", "/v1/things", good, []string{key}, func(c echo.Context) error {
			c.Response().Header().Set("Location", "x")
			return c.JSON(201, map[string]string{"id": "1"})
		}, "doesn't match schema"},
		"a member that is missing": {"POST", "/v1/things", good, []string{key}, func(c echo.Context) error {
			c.Response().Header().Set("Location", "x")
			return c.JSON(201, map[string]string{})
		}, "doesn't match schema"},
		"a header that is missing":       {"POST", "/v1/things", good, []string{key}, func(c echo.Context) error { return c.JSON(201, map[string]int{"id": 1}) }, `header "Location" missing`},
		"a header that is not in it":     {"POST", "/v1/things", good, []string{key}, func(c echo.Context) error { c.Response().Header().Set("X-More", "x"); return created(c) }, "the header X-More is undocumented"},
		"a media type that is not in it": {"POST", "/v1/things", good, []string{key}, func(c echo.Context) error { c.Response().Header().Set("Location", "x"); return c.String(201, "1") }, "Content-Type"},
		"a route that is not in it":      {"GET", "/v1/secret", "", nil, nil, "the route is undocumented"},
		"a route that there is not":      {"GET", "/v1/nothing", "", nil, nil, ""},
		"a method that there is not":     {"PUT", "/v1/things", "", nil, nil, ""},
		"the methods that there are":     {"OPTIONS", "/v1/things", "", nil, nil, ""},
		"a path with a slash too many":   {"POST", "/v1/things/", "", nil, nil, ""},
	} {
		answer = c.answer
		found := &report{TB: t}
		s.As("demo-agent").Send(found, c.method, c.path, c.body, c.headers...)
		switch all := strings.Join(found.errors, "\n"); {
		case c.want == "" && all != "":
			t.Errorf("%s: found %s", name, all)
		case !strings.Contains(all, c.want):
			t.Errorf("%s: found %q, want %q", name, all, c.want)
		}
	}

	answer = created
	without := &report{TB: t}
	s.As("").Send(without, "POST", "/v1/things", good, key)
	if len(without.errors) == 0 {
		t.Error("a 401 that is not in the document was not found")
	}
}
