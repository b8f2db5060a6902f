package scenarios

import (
	"net/http"

	"github.com/einmal/einmal/e2e/harness"
)

var concurrentRefundsCannotExceed = Scenario{
	Name:    "concurrent_refunds_cannot_exceed",
	Promise: "Two refunds at the same time that together are more than was captured: one is accepted, the other is told what remains.",
	run: func(s *Stage) int {
		t := s.Till(patient)
		replicas := []*harness.Service{t.Replica(), t.Replica()}
		const rounds = 50
		for range rounds {
			paid := t.Done(replicas[0], t.Pays(t.NewOrder(replicas[0])))
			t.Done(replicas[0], t.Captures(paid, "100.00"))
			won, lost := t.race(replicas, t.Refunds(paid, "60.00"), t.Refunds(paid, "60.00"))
			t.Problem("the other refund", lost, http.StatusConflict, "refund-exceeds-remaining")
			t.Succeeds(replicas[0], won)
		}
		t.Notef("%d rounds", rounds)
		return rounds * 3
	},
}
