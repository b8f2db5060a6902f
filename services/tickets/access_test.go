package tickets_test

import (
	"strings"
	"testing"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/problem"
	"github.com/einmal/einmal/pkg/server/servertest"
	"github.com/einmal/einmal/services/tickets"
)

// tokens is a file that knows one principal for each role of an account, called like it.
func tokens(t *testing.T) string {
	t.Helper()
	return servertest.Tokens(t, "agent acme agent", "approver acme approver", "operator acme operator", "auditor acme auditor")
}

func TestWhoMayDoWhat(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind, func(c *tickets.Config) { c.TokensFile, c.Demo = tokens(t), false })

		t.Run("nobody without a token that is known", func(t *testing.T) {
			known := servertest.Token("agent")
			for _, token := range []string{"", "demo-agent", "agent", "T" + known[1:], known[:len(known)-1], known + "2"} {
				expect(t, token, create(t, s.With(token), key("k"), `{"project":"ops","title":"nobody's"}`), 401, problem.Unauthenticated)
				expect(t, token, s.With(token).Send(t, "GET", "/v1/tickets", ""), 401, problem.Unauthenticated)
			}
		})

		t.Run("approvers and auditors do not write", func(t *testing.T) {
			for _, role := range []string{"approver", "auditor"} {
				expect(t, role, create(t, s.As(role), key("k"), `{"project":"ops","title":"theirs"}`), 403, problem.Forbidden)
				expect(t, role, create(t, s.As(role), "Idempotency-Key: ", "no body"), 403, problem.Forbidden) // before anything is looked at
			}
		})

		t.Run("and none of that uses a key up", func(t *testing.T) {
			if n := s.count(t, "operations"); n != 0 {
				t.Errorf("%d operations", n)
			}
			if a := create(t, s.As("agent"), key("k"), `{"project":"ops","title":"t"}`); a.Outcome() != "executed" {
				t.Errorf("agent: %s", a)
			}
			if a := create(t, s.As("operator"), key("l"), `{"project":"ops","title":"t"}`); a.Outcome() != "executed" {
				t.Errorf("operator: %s", a)
			}
		})

		t.Run("a replay is checked like a first attempt", func(t *testing.T) {
			expect(t, "approver", create(t, s.As("approver"), key("k"), `{"project":"ops","title":"t"}`), 403, problem.Forbidden)
			if a := create(t, s.As("operator"), key("k"), `{"project":"ops","title":"t"}`); a.Outcome() != "replayed" {
				t.Errorf("operator: %s", a)
			}
		})

		t.Run("every role reads", func(t *testing.T) {
			id := ticketOf(t, create(t, s.As("agent"), key("k"), `{"project":"ops","title":"t"}`)).ID
			for _, role := range []string{"agent", "approver", "operator", "auditor"} {
				for _, path := range []string{"/v1/tickets", "/v1/tickets/" + id, "/v1/operations"} {
					if a := s.As(role).Send(t, "GET", path, ""); a.Status != 200 {
						t.Errorf("%s %s: %s", role, path, a)
					}
				}
				if a := s.As(role).Send(t, "GET", "/v1/operations", "", key("k")); a.Status != 200 {
					t.Errorf("%s by key: %s", role, a)
				}
				if a := s.As(role).Send(t, "POST", "/v1/fingerprints", `{"method":"POST","path":"/v1/tickets","body":{"project":"ops","title":"t"}}`); a.Status != 200 {
					t.Errorf("%s: %s", role, a)
				}
			}
		})
	})
}

func TestARateLimitUsesNoKeyUp(t *testing.T) {
	s := start(t, database.SQLite, func(c *tickets.Config) { c.RateLimit, c.RateBurst = 0.001, 2 })
	create(t, s.agent(), key("one"), `{"project":"ops","title":"t"}`)
	create(t, s.agent(), key("two"), `{"project":"ops","title":"t"}`)
	for _, k := range []string{"one", "three"} { // a replay, too
		a := create(t, s.agent(), key("%s", k), `{"project":"ops","title":"t"}`)
		p := expect(t, k, a, 429, problem.RateLimited)
		if p.Retry != problem.RetrySameKey || p.Effect != problem.EffectNone || a.Header.Get("Retry-After") == "" {
			t.Errorf("%s", a)
		}
	}
	if a := create(t, s.globex(), key("one"), `{"project":"ops","title":"t"}`); a.Status != 201 {
		t.Errorf("another account: %s", a)
	}
	if n := s.count(t, "operations"); n != 3 {
		t.Errorf("%d operations", n)
	}
}

// A request that is wrong in every way is told of one at a time, in the contract's order; what comes first says nothing about
// what comes later.
func TestTheOrderOfChecks(t *testing.T) {
	s := start(t, database.SQLite)
	huge := `{"project":"ops","title":"` + strings.Repeat("a", 1<<20) + `"}`
	wrongType := "Content-Type: text/plain"
	for _, step := range []struct {
		who, method, path, body string
		headers                 []string
		status                  int
		code                    problem.Code
	}{
		{"nobody", "BREW", "/v1/nothing", huge, []string{wrongType}, 401, problem.Unauthenticated},
		{"demo-approver", "BREW", "/v1/nothing", huge, []string{wrongType}, 404, problem.RouteNotFound},
		{"demo-approver", "BREW", "/v1/tickets", huge, []string{wrongType}, 405, problem.MethodNotAllowed},
		{"demo-approver", "POST", "/v1/tickets", huge, []string{wrongType}, 403, problem.Forbidden},
		{"demo-agent", "POST", "/v1/tickets", huge, []string{wrongType}, 400, problem.IdempotencyKeyMissing},
		{"demo-agent", "POST", "/v1/tickets", huge, []string{wrongType, key("k"), key("k")}, 400, problem.IdempotencyKeyInvalid},
		{"demo-agent", "POST", "/v1/tickets", huge, []string{wrongType, key("k"), "Agent-Run-Id: a b"}, 415, problem.UnsupportedMediaType},
		{"demo-agent", "POST", "/v1/tickets", huge, []string{key("k"), "Agent-Run-Id: a b"}, 413, problem.BodyTooLarge},
		{"demo-agent", "POST", "/v1/tickets", `{"title":1,"title":2}`, []string{key("k"), "Agent-Run-Id: a b"}, 400, problem.MalformedBody},
		{"demo-agent", "POST", "/v1/tickets", `{"project":"ops","title":"t"}`, []string{key("k"), "Agent-Run-Id: a b"}, 422, problem.ValidationFailed},
		{"demo-agent", "POST", "/v1/tickets", `{"project":"ops","title":1}`, []string{key("k")}, 422, problem.ValidationFailed},
	} {
		a := s.As(step.who).Send(t, step.method, step.path, step.body, step.headers...)
		expect(t, step.code, a, step.status, step.code)
	}
	if a := create(t, s.agent(), key("k"), `{"project":"ops","title":"t"}`); a.Outcome() != "executed" {
		t.Errorf("the key was used up: %s", a)
	}
	expect(t, "conflict", create(t, s.agent(), key("k"), `{"project":"ops","title":"u"}`), 422, problem.IdempotencyKeyReused)
}
