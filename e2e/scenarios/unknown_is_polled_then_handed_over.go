package scenarios

import (
	"net/http"

	agents "github.com/einmal/einmal/pkg/agent"
	"github.com/einmal/einmal/services/simulator"
)

var unknownIsPolledThenHandedOver = Scenario{
	Name:    "unknown_is_polled_then_handed_over",
	Promise: "An operation whose outcome nobody knows is asked for while there is time, then handed over with all that is known, and never sent under another key.",
	Injects: true,
	run: func(s *Stage) int {
		t := s.Till(brisk)
		replica := t.Replica()
		return s.EachWay(replica, func(e *Errand) int {
			o := t.NewOrder(replica)
			t.psp.Next(confirm, simulator.After, simulator.Hang)
			t.psp.NextAnswered(retrieve, simulator.Before, http.StatusServiceUnavailable, 1_000_000)
			bounded := pays("pay", o).with("budget", map[string]int{"deadline_seconds": 5})
			report := e.Ends("the agent", e.Do(bounded), 3, agents.Unknown)
			looks := 0
			for _, request := range report.Requests {
				if request.Kind == agents.LookRequest {
					looks++
				}
			}
			e.Check(looks > 0 && report.Operation.ID != "" && report.Effect == "unknown", "after %d looks it knows %+v, effect %s", looks, report.Operation, report.Effect)
			e.Ends("the agent that asks once more", e.Resume(), 3, agents.Unknown)

			t.psp.Disarm()
			t.AwaitState(replica, &Act{Operation: report.Operation.ID}, "succeeded")
			e.Spare()
			e.EndsAll("the agent, when the world can be asked again", e.Resume(), 1)
			e.EndsAll("the same step", e.Do(bounded), 1)
			e.Check(e.Entry().Key == report.Key, "the key has changed")
			return 1
		})
	},
}
