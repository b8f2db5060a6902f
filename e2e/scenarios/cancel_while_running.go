package scenarios

import (
	"net/http"

	"github.com/einmal/einmal/services/simulator"
)

var cancelWhileRunning = Scenario{
	Name:    "cancel_while_running",
	Promise: "A rollout that is canceled is broken off once, though the answer of the cluster is lost; both operations end when it is, and the next deployment begins.",
	Injects: true,
	run: func(s *Stage) int {
		y := s.Yard(brisk, soon)
		replica := y.Replica()
		running := y.Begin(replica, y.Plans())
		y.cluster.AwaitRollout(running.EffectKey)
		next := y.Begin(replica, y.Plans(queued))

		y.cluster.Next(stop, simulator.After, simulator.Reset)
		cancelation := y.Begin(replica, y.BreaksOff(running))
		op := y.Settled(replica, cancelation)
		y.Check(op.Text("state") == "succeeded", "the cancelation has become %v, want it succeeded", op)
		status := y.Is(replica, running, "canceled")
		y.Check(status.Text("reason") != "", "the deployment is %v, want it to say why", status)
		y.Problem("the deployment again", y.Ask(replica, running), http.StatusConflict, "operation-canceled")
		again := y.Ask(replica, cancelation)
		y.Check(again.Status == http.StatusOK && again.Outcome() == "replayed" && again.Text("state") == "canceled", "the cancelation again: got %v", again)
		y.Problem("another cancelation", y.Ask(replica, y.BreaksOff(running)), http.StatusConflict, "operation-final")

		y.cluster.AwaitRollout(next.EffectKey)
		y.Settled(replica, y.Begin(replica, y.BreaksOff(next)))
		y.Is(replica, next, "canceled")
		y.Check(len(y.Prod(replica).Releases) == 0, "something is live: %+v", y.Prod(replica))
		return 4 // two rollouts and two stops
	},
}
