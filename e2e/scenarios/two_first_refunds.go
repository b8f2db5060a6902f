package scenarios

import (
	"net/http"

	"github.com/einmal/einmal/e2e/harness"
)

var twoFirstRefunds = Scenario{
	Name:    "two_first_refunds",
	Promise: "Of two refunds of a payment at the same time, at two replicas, one is its first, and the other asks a person.",
	run: func(s *Stage) int {
		t := s.Till(patient)
		replicas := []*harness.Service{t.Replica(), t.Replica()}
		const rounds = 15
		for range rounds {
			paid := t.Done(replicas[0], t.Pays(t.NewOrder(replicas[0])))
			t.Done(replicas[0], t.Captures(paid, "100.00"))
			acts := []*Act{t.Refunds(paid, "30.00"), t.Refunds(paid, "30.00")}
			asking := 0
			for i, answer := range t.together(replicas, acts) {
				t.Check(answer.Status == http.StatusAccepted, "a refund: got %v, want it accepted", answer)
				t.Accepted(acts[i], answer)
				if answer.Text("approval_id") != "" {
					asking++
					t.Approve(replicas[i], acts[i].Operation)
				}
			}
			t.Check(asking == 1, "%d of two refunds ask a person", asking)
			t.Succeeds(replicas[0], acts[0])
			t.Succeeds(replicas[0], acts[1])
		}
		t.Notef("%d rounds", rounds)
		return rounds * 4
	},
}
