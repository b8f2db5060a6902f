package scenarios

import (
	"net/http"

	"github.com/einmal/einmal/e2e/faults"
	"github.com/einmal/einmal/services/simulator"
)

var staleHolderIsFenced = Scenario{
	Name:    "stale_holder_is_fenced",
	Promise: "A sender paused past its lease, until others have brought its release out and a newer one, changes nothing when what it sent arrives at last.",
	Injects: true,
	run: func(s *Stage) int {
		return s.EachClusterKeys(brisk, usual, func(y *Yard) int {
			road := y.HTTPProxy(y.cluster.Service)
			road.Next(faults.HoldRequest)
			sender := y.ReplicaTo(road.URL())
			r := y.Begin(sender, y.Plans())
			y.Await("the send is on its way", func() bool { return road.Held() == 1 })
			y.Freeze(sender)

			other := y.Replica()
			y.Succeeds(other, r)
			newer := y.Done(other, y.Plans())
			late := y.deliver(road)
			if y.Keys == simulator.Honour {
				y.Check(late.Header.Get("Idempotent-Replayed") == "true", "the late send got %v, want a replay of the second", late)
			} else {
				y.Check(late.Status == http.StatusConflict && late.Text("code") == "below_floor", "the late send got %v, want it refused by the floor", late)
			}
			y.must(sender.Thaw())
			y.must(sender.Terminate()) // it notes what it saw
			y.Succeeds(other, r)
			y.Live(other, newer)
			y.Notef("the late send arrived and got %d", late.Status)
			return 2
		})
	},
}
