package scenarios

import (
	"net/http"

	"github.com/einmal/einmal/services/simulator"
)

var rollbackIsItsOwnOperation = Scenario{
	Name:    "rollback_is_its_own_operation",
	Promise: "A rollback is a deployment of its own, of exactly what was live before, once however often it is asked for; nothing rolls back by itself.",
	Injects: true,
	run: func(s *Stage) int {
		return s.EachClusterKeys(brisk, usual, func(y *Yard) int {
			replica := y.Replica()
			first, second := y.Done(replica, y.Plans()), y.Done(replica, y.Plans())
			y.Problem("the rollback of what is not live", y.Ask(replica, y.RollsBack(first, "")), http.StatusConflict, "not-live")

			y.cluster.Next(send, simulator.After, simulator.Reset)
			back := y.Begin(replica, y.RollsBack(second, ""))
			y.Approve(replica, back.Operation)
			y.Check(back.Operation != second.Operation && back.ID != second.ID, "the rollback is the operation that it takes back")
			y.Succeeds(replica, back)
			status := y.Status(replica, back)
			y.Check(status.Text("kind") == "rollback" && status.Text("rollback_of") == second.ID && status.Text("artifact") == first.Artifact,
				"the rollback is %v, want it of %s to %s", status, second.ID, first.Artifact)
			y.Live(replica, back)

			failing := y.Begin(replica, y.Plans(func(p *plan) { p.Service = "failing" }))
			y.Is(replica, failing, "failed")
			env := y.Prod(replica)
			y.Check(env.Lock == nil && len(env.Releases) == 1 && env.Releases[0].Artifact == first.Artifact, "after a rollout that failed prod is %+v", env)
			return 4
		})
	},
}
