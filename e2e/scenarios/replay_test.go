package scenarios_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/einmal/einmal/e2e/harness"
	"github.com/einmal/einmal/e2e/scenarios"
)

var record = flag.Bool("record", false, "record the notifications of the real Alertmanager")

// alertmanagers are the scenarios that Alertmanager has a part in.
func alertmanagers(t *testing.T) (all []scenarios.Scenario) {
	t.Helper()
	for _, name := range []string{"alertmanager_repeats", "alertmanager_pair", "alert_resolves_and_returns"} {
		i := slices.IndexFunc(scenarios.All(), func(s scenarios.Scenario) bool { return s.Name == name })
		if i < 0 {
			t.Fatalf("there is no scenario %s", name)
		}
		all = append(all, scenarios.All()[i])
	}
	return all
}

func laboratory(t *testing.T) *harness.Lab {
	t.Helper()
	binary, err := harness.Build(t.Context(), t.TempDir())
	must(t, err)
	lab, err := harness.New(t.Context(), harness.Options{Binary: binary, Database: "sqlite"})
	must(t, err)
	t.Cleanup(func() { must(t, lab.Close()) })
	return lab
}

func TestRecordNotifications(t *testing.T) {
	if !*record {
		t.Skip("it writes files; run it with -record where prometheus-alertmanager is installed")
	}
	lab := laboratory(t)
	for _, scenario := range alertmanagers(t) {
		outcome := scenarios.Recorded(scenario, func(text []byte) {
			must(t, os.WriteFile(filepath.Join("testdata", "alertmanager", scenario.Name+".json"), text, 0o600))
		}).Play(t.Context(), lab, 1)
		must(t, outcome.Err)
	}
}

// A machine without the program plays the same scenarios with what it has sent before.
func TestScenariosWithoutAlertmanager(t *testing.T) {
	lab := laboratory(t)
	t.Setenv("PATH", t.TempDir())
	for _, scenario := range alertmanagers(t) {
		t.Run(scenario.Name, func(t *testing.T) {
			outcome := scenario.Play(t.Context(), lab, 1)
			if outcome.Err != nil || !strings.HasPrefix(outcome.Detail, "without prometheus-alertmanager") {
				t.Fatalf("%+v", outcome)
			}
			t.Log(outcome.Detail)
		})
	}
}
