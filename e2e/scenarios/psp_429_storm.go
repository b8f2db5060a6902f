package scenarios

import (
	"net/http"

	"github.com/einmal/einmal/services/simulator"
)

var psp429Storm = Scenario{
	Name:    "psp_429_storm",
	Promise: "A provider that has too much to do has done nothing: every payment is sent again when it says so, and each is authorised once.",
	Injects: true,
	run: func(s *Stage) int {
		t := s.Till(patient)
		replica := t.Replica()
		const payments = 8
		t.psp.NextAnswered(create, simulator.Before, http.StatusTooManyRequests, payments)
		t.psp.NextAnswered(confirm, simulator.Before, http.StatusTooManyRequests, payments)
		var acts []*Act
		for range payments {
			acts = append(acts, t.Begin(replica, t.Pays(t.NewOrder(replica))))
		}
		t.psp.AwaitFired(2 * payments)
		for _, a := range acts {
			t.Succeeds(replica, a)
		}
		unknown := t.Count("SELECT count(*) FROM events WHERE type = 'unknown'")
		t.Check(unknown == 0, "%d operations were unknown, although 429 says that nothing was begun", unknown)
		return payments
	},
}
