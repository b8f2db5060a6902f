package einmal_test

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/e2e/scenarios"
)

// docs/failures.md names every scenario, each under one kind of failure.
func TestEveryScenarioIsUnderAKindOfFailure(t *testing.T) {
	page, err := os.ReadFile("docs/failures.md")
	if err != nil {
		t.Fatal(err)
	}
	var named, played []string
	for _, name := range regexp.MustCompile("`([a-z0-9]+(?:_[a-z0-9]+)+)`").FindAllStringSubmatch(string(page), -1) {
		if name[1] != "source_event_id" {
			named = append(named, name[1])
		}
	}
	for _, s := range scenarios.All() {
		played = append(played, s.Name)
	}
	slices.Sort(named)
	slices.Sort(played)
	if diff := cmp.Diff(played, named); diff != "" {
		t.Errorf("scenarios that are played (-) and that docs/failures.md names (+):\n%s", diff)
	}
}
