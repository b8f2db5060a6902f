package e2e_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/einmal/einmal/e2e"
	"github.com/einmal/einmal/e2e/record"
	"github.com/einmal/einmal/e2e/report"
	"github.com/einmal/einmal/e2e/scenarios"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
)

// What is drawn is what really passed: as many arrows reach the desk as it says calls arrived, directly or through a proxy, and each effect of its ledger
// is there. These are scenarios of which no diagram leaves anything out.
func TestDiagramsShowWhatTheSimulatorSays(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		lab := open(t, kind)
		for _, scenario := range scenarios.All() {
			if scenario.Name != "killed_after_effect" && scenario.Name != "late_request_keys_ignored" {
				continue
			}
			t.Run(scenario.Name, func(t *testing.T) {
				log := record.New()
				outcome := scenario.Play(record.Into(t.Context(), log), lab, 1)
				if outcome.Err != nil {
					t.Fatal(outcome.Err)
				}
				recording := log.Read()
				if len(recording.Worlds) != 1 || len(recording.Worlds[0].Ledger) != outcome.Effects || outcome.Effects == 0 {
					t.Fatalf("%d simulators were asked, for %d effects", len(recording.Worlds), outcome.Effects)
				}
				section := report.Tell(report.Scenario{Name: scenario.Name, Recording: recording})
				arrived, effects, lost := 0, 0, 0
				for _, chapter := range section.Chapters {
					if chapter.Left > 0 {
						t.Fatalf("%s leaves %d out", chapter.Name, chapter.Left)
					}
					for _, a := range chapter.Drawing.Arrows {
						if a.To == "desk" && !a.Lost {
							arrived += a.Times
						}
						if a.Lost {
							lost += a.Times
						}
					}
					for _, p := range chapter.Drawing.Pills {
						if strings.HasPrefix(p.Label.Label, "effect: ") {
							effects += p.Times
						}
					}
				}
				world := recording.Worlds[0]
				if arrived != len(world.Calls) || effects != len(world.Ledger) || lost == 0 {
					t.Errorf("%d calls, %d effects and %d losses are drawn; the desk says %d calls and %d effects", arrived, effects, lost, len(world.Calls), len(world.Ledger))
				}
				most := map[bool]int{false: 1, true: 2}[scenario.Impossible]
				if len(section.Injections) == 0 || section.Operations == 0 || section.Writes == 0 || section.MostUnderOneKey != most {
					t.Errorf("%d kinds of faults, %d operations, %d writes, at most %d effects under one key",
						len(section.Injections), section.Operations, section.Writes, section.MostUnderOneKey)
				}
			})
		}
	})
}

func TestRunWritesAReport(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.html")
	var out bytes.Buffer
	results, err := e2e.Run(t.Context(), e2e.Options{
		Names: []string{"desk_without_keys_goes_to_review", "other_account_same_key"}, Database: "sqlite", Binary: binary(t), Report: file, Version: "einmal of a test",
	}, &out)
	if err != nil || results.Err() != nil {
		t.Fatal(err, results.Err())
	}
	if !strings.Contains(out.String(), file) {
		t.Errorf("where the report is, is not said:\n%s", out.String())
	}
	written, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	page := string(written)
	for _, want := range []string{
		"2 of 2 scenarios held", "einmal of a test", "embedded SQLite", `id="other_account_same_key"`, "caller 2", "review", fmt.Sprintf("%.1f s", results.Scenarios[0].Seconds),
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the report does not say %q", want)
		}
	}
	for _, secret := range []string{"demo-", "Bearer", "nobody", os.TempDir()} {
		if strings.Contains(page, secret) {
			t.Errorf("the report says %q", secret)
		}
	}
}

func TestRunRefusesAReportThatItCannotWrite(t *testing.T) {
	var out bytes.Buffer
	_, err := e2e.Run(t.Context(), e2e.Options{
		Names: []string{"lost_request"}, Database: "sqlite", Binary: binary(t), Report: filepath.Join(t.TempDir(), "nowhere", "report.html"),
	}, &out)
	if err == nil || !strings.Contains(err.Error(), "write report") || out.Len() > 0 {
		t.Fatalf("got %v after\n%s", err, out.String())
	}
}
