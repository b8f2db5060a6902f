package payments_test

import (
	"strings"
	"testing"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/problem"
)

func TestRoles(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)
		p := s.captured("o")
		refunded := of[refund](t, s.refund("r", p.ID, "1", wait))
		writes := map[string]string{
			"PUT /v1/orders/x":                                 `{"amount":"1","currency":"EUR","payee":"p"}`,
			"POST /v1/payments":                                `{"order_id":"x","amount":"1","currency":"EUR"}`,
			"POST /v1/payments/" + p.ID + "/capture":           `{"amount":"1"}`,
			"POST /v1/payments/" + p.ID + "/cancel":            `{}`,
			"POST /v1/payments/" + p.ID + "/refunds":           `{"amount":"1","reason":"r"}`,
			"POST /v1/operations/" + p.OperationID + "/cancel": `{}`,
		}
		operations := s.count("operations")
		for route, body := range writes {
			method, path, _ := strings.Cut(route, " ")
			expect(t, route, s.As("demo-approver").Send(t, method, path, body, key("k")), 403, problem.Forbidden)
			expect(t, route, s.As("").Send(t, method, path, body, key("k")), 401, problem.Unauthenticated)
			expect(t, route, s.agent().Send(t, method, path, body), 400, problem.IdempotencyKeyMissing)
		}
		if n := s.count("operations"); n != operations {
			t.Errorf("%d operations more", n-operations)
		}
		for _, path := range []string{
			"/v1/orders", "/v1/orders/o", "/v1/payments", "/v1/payments/" + p.ID, "/v1/payments/" + p.ID + "/refunds",
			"/v1/payments/" + p.ID + "/refunds/" + refunded.ID, "/v1/operations", "/v1/reviews",
		} {
			for _, who := range []string{"demo-agent-2", "demo-approver", "demo-operator"} {
				if a := s.As(who).Send(t, "GET", path, ""); a.Status != 200 {
					t.Errorf("%s of %s: %s", path, who, a)
				}
			}
			expect(t, path, s.As("").Send(t, "GET", path, ""), 401, problem.Unauthenticated)
		}
		for _, path := range []string{"/v1/orders/o", "/v1/payments/" + p.ID, "/v1/payments/" + p.ID + "/refunds", "/v1/payments/" + p.ID + "/refunds/" + refunded.ID} {
			expect(t, path, s.globex().Send(t, "GET", path, ""), 404, problem.NotFound)
		}
		for _, path := range []string{"/v1/orders", "/v1/payments", "/v1/operations"} {
			var page struct{ Items []struct{ ID string } }
			s.globex().Send(t, "GET", path, "").Decode(t, &page)
			if len(page.Items) != 0 {
				t.Errorf("%s shows globex %+v", path, page)
			}
		}
	})
}
