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
	for _, line := range regexp.MustCompile("(?m)^`[a-z0-9_]+`(?: · `[a-z0-9_]+`)*(?: ·)?$").FindAllString(string(page), -1) {
		named = append(named, regexp.MustCompile("[a-z0-9_]+").FindAllString(line, -1)...)
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
