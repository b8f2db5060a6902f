package simulator_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/services/simulator"
)

func TestSend(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		w := start(t, kind)

		t.Run("opens a ticket, once for a key", func(t *testing.T) {
			first, again := w.send("k"), w.sendBody("k", ` { "account":"acme", "external_id":"tkt_1","project":"ops","title":"Disk full" }`)
			check(t, first, 201, "")
			if again.status != 201 || again.body != first.body || first.replayed() || !again.replayed() {
				t.Errorf("first %v (replayed %v), again %v (replayed %v)", first, first.replayed(), again, again.replayed())
			}
			if first.member("effect_key") != "k" || first.member("created_at") == "" {
				t.Errorf("got %v", first)
			}
			want := []simulator.Effect{{Target: "desk", Kind: "ticket", EffectKey: "k", Reference: first.member("reference"), Account: "acme"}}
			if diff := cmp.Diff(want, w.ledger(), cmpopts.IgnoreFields(simulator.Effect{}, "At")); diff != "" {
				t.Error(diff)
			}
		})

		t.Run("refuses a key with another body", func(t *testing.T) {
			check(t, w.sendBody("k", `{"title":"Disk full","project":"dev"}`), 422, "key_reused")
		})

		t.Run("refuses a project for good, and remembers that", func(t *testing.T) {
			first, again := w.sendBody("no", `{"title":"t","project":"refused"}`), w.sendBody("no", `{"title":"t","project":"refused"}`)
			check(t, first, 422, "refused")
			check(t, again, 422, "refused")
			if first.replayed() || !again.replayed() {
				t.Errorf("replayed: first %v, again %v", first.replayed(), again.replayed())
			}
		})

		t.Run("remembers nothing about a body that it cannot read", func(t *testing.T) {
			for body, says := range map[string]string{
				`{`:                                     "ends too early",
				`{"project":"ops"}`:                     "title is missing",
				`{"title":""}`:                          "title must have",
				`{"title":"` + strings.Repeat("ä", 201): "ends too early",
				`{"title":"` + strings.Repeat("ä", 201) + `"}`:                                  "title must have",
				`{"title":"t","status":"open"}`:                                                 "status is not a member",
				`{"title":"t","project":null}`:                                                  "project must not be null",
				`{"title":"t","account":"a b"}`:                                                 "visible ASCII",
				`{"title":"t","description":"` + strings.Repeat("x", 500_001) + `"}`:            "500 000",
				`{"title":"t","description":"` + strings.Repeat("x", 5<<20) + `"}`:              "longer than",
				`{"title":"t","description":"` + strings.Repeat("x", 500_000) + `","labels":1}`: "labels is not a member",
			} {
				a := w.sendBody("unread", body)
				if a.status != 400 && a.status != 413 || !strings.Contains(a.member("detail"), says) {
					t.Errorf("%.40s…: %v, want %q", body, a, says)
				}
			}
			check(t, w.sendBody("unread", `{"title":"`+strings.Repeat("ä", 200)+`","description":"`+strings.Repeat("x", 500_000)+`"}`), 201, "")
		})

		t.Run("needs one well-formed key", func(t *testing.T) {
			check(t, w.do(t.Context(), writeToken, "POST", "/desk/v1/tickets", body), 400, "invalid")
			check(t, w.do(t.Context(), writeToken, "POST", "/desk/v1/tickets", body, "Idempotency-Key", "a", "Idempotency-Key", "a"), 400, "invalid")
			check(t, w.send("with space"), 400, "invalid")
			check(t, w.send(strings.Repeat("k", 256)), 400, "invalid")
			check(t, w.close("%00"), 400, "invalid")
			check(t, w.lookUp(""), 400, "invalid")
		})
		w.checkEffects(2)
	})
}

func TestTokens(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		w := start(t, kind)
		for token, want := range map[string][3]int{writeToken: {201, 200, 200}, readToken: {401, 200, 401}, "wrong": {401, 401, 401}, "": {401, 401, 401}} {
			got := [3]int{
				w.do(t.Context(), token, "POST", "/desk/v1/tickets", body, "Idempotency-Key", "k").status,
				w.do(t.Context(), token, "GET", "/desk/v1/tickets?effect_key=k", "").status,
				w.do(t.Context(), token, "POST", "/desk/v1/effects/k/close", "").status,
			}
			if got != want {
				t.Errorf("token %q: send, lookup, close answer %v, want %v", token, got, want)
			}
		}
		w.checkEffects(1)
		if got := len(w.calls()); got != 12 {
			t.Errorf("%d calls, want all 12: who is turned away has called too", got)
		}
	})
}

func TestCallsAreInTheOrderOfTheirArrival(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		w := start(t, kind)
		w.arm(`{"target":"desk","operation":"lookup","when":"after","action":"lose","times":1}`)
		w.send("a")
		w.lookUp("a")
		w.close("a")
		w.send("not a key")
		want := []simulator.Call{
			{Target: "desk", Kind: "send", EffectKey: "a"},
			{Target: "desk", Kind: "lookup", EffectKey: "a", Faulted: true},
			{Target: "desk", Kind: "close", EffectKey: "a"},
			{Target: "desk", Kind: "send"},
		}
		if diff := cmp.Diff(want, w.calls(), cmpopts.IgnoreFields(simulator.Call{}, "At")); diff != "" {
			t.Error(diff)
		}
		if w.calls()[0].At.IsZero() {
			t.Error("a call has no time")
		}
	})
}
