package deployments_test

import (
	"strings"
	"testing"

	"github.com/einmal/einmal/pkg/database"
)

func TestTheDocumentIsTrue(t *testing.T) {
	s := start(t, database.SQLite)
	s.CheckDocument(t, s.As("demo-operator"), "{id}", "1", "{name}", "a", "{code}", "1")
}

func TestTheDocumentAsAPage(t *testing.T) { start(t, database.SQLite).CheckPage(t) }

func TestThePolicy(t *testing.T) {
	operations := start(t, database.SQLite).CheckPolicy(t, "deployments",
		"approval.decide", "deployment.cancel", "deployment.create", "deployment.rollback", "environment.put", "operation.cancel", "operation.reconcile", "review.resolve")
	for operation, want := range map[string]struct{ target, approval string }{
		"deployment.create":   {"cluster", "when the environment requires it"},
		"deployment.cancel":   {"cluster", "never"},
		"deployment.rollback": {"cluster", "always"},
		"environment.put":     {"none", "never"},
	} {
		if e := operations[operation]; e["owner"] != "deployments" || e["target"] != want.target || e["approval"] != want.approval {
			t.Errorf("%s: %v", operation, e)
		}
	}
}

func TestMetricsTellOfEffects(t *testing.T) {
	text := string(start(t, database.SQLite).As("").Send(t, "GET", "/metrics", "").Body)
	if want := `einmal_effects_open{service="deployments",state="unknown",target="cluster"} 0`; !strings.Contains(text, want+"\n") {
		t.Errorf("no %s in\n%s", want, text)
	}
}
