package tickets_test

import (
	"strings"
	"testing"

	"github.com/einmal/einmal/pkg/database"
)

func TestTheDocumentIsTrue(t *testing.T) {
	s := start(t, database.SQLite)
	s.CheckDocument(t, s.As("demo-operator"), "{id}", "1", "{comment_id}", "1", "{code}", "1")
}

func TestTheDocumentAsAPage(t *testing.T) { start(t, database.SQLite).CheckPage(t) }

func TestThePolicy(t *testing.T) {
	operations := start(t, database.SQLite).CheckPolicy(t, "tickets",
		"approval.decide", "operation.cancel", "operation.reconcile", "review.resolve", "ticket.comment", "ticket.create", "ticket.mirror", "ticket.set_status")
	if owner := operations["ticket.create"]["owner"]; owner != "tickets" {
		t.Errorf("ticket.create belongs to %v", owner)
	}
}

func TestMetricsTellOfEffects(t *testing.T) {
	text := string(start(t, database.SQLite).As("").Send(t, "GET", "/metrics", "").Body)
	if want := `einmal_reviews_overdue{kind="unknown",service="tickets"} 0`; !strings.Contains(text, want+"\n") {
		t.Errorf("no %s in\n%s", want, text)
	}
}
