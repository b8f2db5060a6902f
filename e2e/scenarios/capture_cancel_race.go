package scenarios

import (
	"net/http"

	"github.com/einmal/einmal/e2e/harness"
)

var captureCancelRace = Scenario{
	Name:    "capture_cancel_race",
	Promise: "A capture and a cancel of one payment at the same time: one happens, the other is told to wait and then that it is too late.",
	run: func(s *Stage) int {
		t := s.Till(patient)
		replicas := []*harness.Service{t.Replica(), t.Replica()}
		const rounds = 25
		captures := 0
		for range rounds {
			paid := t.Done(replicas[0], t.Pays(t.NewOrder(replicas[0])))
			acts := []*Act{t.Captures(paid, "100.00"), t.Cancels(paid)}
			won, lost := t.race(replicas, acts...)
			tooLate, loser := "payment-not-cancelable", acts[1]
			if won == acts[1] {
				tooLate, loser = "payment-not-capturable", acts[0]
			} else {
				captures++
			}
			// It lost the race for the row, or came when all was over.
			t.Check(lost.Text("code") == "payment-busy" || lost.Text("code") == tooLate, "the other: got %v, want 409 payment-busy or %s", lost, tooLate)
			t.Succeeds(replicas[0], won)
			t.Problem("the other again", t.Ask(replicas[1], loser), http.StatusConflict, tooLate)
		}
		t.Notef("%d rounds, of which the capture won %d", rounds, captures)
		return rounds * 2
	},
}
