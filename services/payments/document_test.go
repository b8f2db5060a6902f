package payments_test

import (
	"strings"
	"testing"

	"github.com/einmal/einmal/pkg/database"
)

func TestTheDocumentIsTrue(t *testing.T) {
	s := start(t, database.SQLite)
	s.put("order-4711") // which an example pays
	s.CheckDocument(t, s.As("demo-operator"), "{id}", "1", "{refund}", "1", "{code}", "1")
}

func TestTheDocumentAsAPage(t *testing.T) { start(t, database.SQLite).CheckPage(t) }

func TestThePolicy(t *testing.T) {
	operations := start(t, database.SQLite).CheckPolicy(t, "payments",
		"approval.decide", "operation.cancel", "operation.reconcile", "order.put", "payment.cancel", "payment.capture", "payment.create", "refund.create", "review.resolve")
	if p := operations["payment.create"]; p["owner"] != "payments" || p["max_cost"] == nil || p["approval"] != "when the amount is 10000 or more, in major units of its currency" {
		t.Errorf("payment.create: %v", p)
	}
}

func TestMetricsTellOfEffects(t *testing.T) {
	text := string(start(t, database.SQLite).As("").Send(t, "GET", "/metrics", "").Body)
	if want := `einmal_effects_open{service="payments",state="unknown",target="psp_authorize"} 0`; !strings.Contains(text, want+"\n") {
		t.Errorf("no %s in\n%s", want, text)
	}
}
