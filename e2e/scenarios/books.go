package scenarios

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/einmal/einmal/services/simulator"
)

// checkBooks ends the scenario unless every payment operation is final or with a person. That our books say of each what the provider's ledger
// says is for fsck to find.
func (s *Stage) checkBooks() {
	if s.psp == nil {
		return
	}
	open := s.openEffects()
	s.Check(open == 0, "%d operations are neither final nor with a person", open)
	s.noteLedger(s.psp.Ledger())
}

// noteLedger notes what a ledger shows, after it was compared with our rows: of a scenario in parts, each time what has come to it.
func (s *Stage) noteLedger(ledger []simulator.Effect) {
	if s.noted > 0 && len(ledger) == s.noted {
		return
	}
	counts := map[string]int{}
	for _, e := range ledger[s.noted:] {
		counts[e.Kind]++
	}
	s.noted = len(ledger)
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[kind], kind))
	}
	if parts == nil {
		parts = []string{"nothing"}
	}
	s.Notef("in the ledger, and our rows say so: %s", strings.Join(parts, ", "))
}
