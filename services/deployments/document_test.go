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
		"deployment.cancel", "deployment.create", "deployment.rollback", "environment.put", "operation.cancel", "operation.reconcile", "review.resolve")
	for operation, target := range map[string]string{
		"deployment.create": "cluster", "deployment.cancel": "cluster", "deployment.rollback": "cluster", "environment.put": "none",
	} {
		if e := operations[operation]; e["owner"] != "deployments" || e["target"] != target || e["approval"] != "never" {
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
