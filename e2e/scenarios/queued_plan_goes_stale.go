package scenarios

import (
	"net/http"

	"github.com/einmal/einmal/services/simulator"
)

var queuedPlanGoesStale = Scenario{
	Name:    "queued_plan_goes_stale",
	Promise: "A plan that waited while its environment changed ends failed with the reason when its turn comes, without a byte sent, and the next has its turn.",
	Injects: true,
	run: func(s *Stage) int {
		return s.EachClusterKeys(brisk, usual, func(y *Yard) int {
			replica := y.Replica()
			version := y.Prod(replica).Version
			y.cluster.Next(send, simulator.After, simulator.Reset)
			holder := y.Begin(replica, y.Plans(expecting(version)))
			stale := y.Begin(replica, y.Plans(expecting(version), queued))
			next := y.Begin(replica, y.Plans(expecting(version+1), queued))
			y.Succeeds(replica, holder)
			status := y.Is(replica, stale, "failed")
			y.Check(status.Text("reason") != "", "the stale plan is %v, want it to say why", status)
			y.Problem("the stale plan again", y.Ask(replica, stale), http.StatusConflict, "environment-changed")
			y.Check(y.cluster.Calls(send, stale.EffectKey) == 0, "the stale plan was sent")
			y.Succeeds(replica, next)
			y.Live(replica, next)
			return 2
		})
	},
}
