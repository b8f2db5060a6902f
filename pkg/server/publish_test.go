package server_test

import (
	"strings"
	"testing"

	"github.com/einmal/einmal/pkg/problem"
)

func TestPublishing(t *testing.T) {
	s := start(t, nil)
	if err := s.PublishOpenAPI([]byte("openapi: 3.1.0\npaths:\n  /v1/tickets:\n    post:\n      responses:\n        '201': {description: <created>}\n")); err != nil {
		t.Fatal(err)
	}
	if err := s.PublishJSON("/.well-known/idempotency-policy", map[string]int{"wait_budget_seconds": 2}); err != nil {
		t.Fatal(err)
	}

	t.Run("turns openapi.yaml into JSON that anybody may read", func(t *testing.T) {
		a := s.send(t, "GET", "/openapi.json")
		want := `{"openapi":"3.1.0","paths":{"/v1/tickets":{"post":{"responses":{"201":{"description":"\u003ccreated\u003e"}}}}}}`
		if a.status != 200 || a.body != want || a.header.Get("Content-Type") != "application/json" {
			t.Errorf("%d %s %s", a.status, a.header.Get("Content-Type"), a.body)
		}
	})

	t.Run("answers with a document", func(t *testing.T) {
		if a := s.send(t, "GET", "/.well-known/idempotency-policy"); a.status != 200 || a.body != `{"wait_budget_seconds":2}` {
			t.Errorf("%d %s", a.status, a.body)
		}
	})

	t.Run("refuses an openapi.yaml that is none", func(t *testing.T) {
		for what, document := range map[string]string{
			"bad syntax":        "a: [",
			"no object":         "- a\n- b\n",
			"a number as a key": "responses:\n  201: {}\n",
		} {
			if err := s.PublishOpenAPI([]byte(document)); err == nil || !strings.Contains(err.Error(), "publish") {
				t.Errorf("%s: error %v", what, err)
			}
		}
	})
}

// The type of a problem is a URL at which the service explains it.
func TestEveryProblemHasItsPage(t *testing.T) {
	s := start(t, nil)
	for _, e := range problem.All() {
		a := s.send(t, "GET", problem.New(e.Code, "").Type)
		if a.status != 200 || !strings.HasPrefix(a.header.Get("Content-Type"), "text/html") || !strings.Contains(a.body, e.Title) {
			t.Errorf("%s: %d %s", e.Code, a.status, a.header.Get("Content-Type"))
		}
		if !strings.Contains(a.header.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: Content-Security-Policy %q", e.Code, a.header.Get("Content-Security-Policy"))
		}
	}
	if p := s.send(t, "GET", "/problems/nonsense").problem(t); p.Code != problem.NotFound {
		t.Errorf("%+v", p)
	}
}
