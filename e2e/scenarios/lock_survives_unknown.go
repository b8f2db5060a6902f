package scenarios

import "github.com/einmal/einmal/services/simulator"

var lockSurvivesUnknown = Scenario{
	Name:    "lock_survives_unknown",
	Promise: "While nobody knows what became of a rollout its environment stays locked, also for a process that has just started.",
	Injects: true,
	run: func(s *Stage) int {
		return s.EachClusterKeys(brisk, usual, func(y *Yard) int {
			replica := y.Replica()
			holder, other := y.Plans(), y.Plans()
			y.cluster.Next(send, simulator.After, simulator.Reset)
			y.cluster.Down(lookUp, shut)
			y.Begin(replica, holder)
			y.Is(replica, holder, "unknown")
			y.Locked(replica, other, holder)
			y.Kill(replica)
			y.Restart(replica)
			y.Locked(replica, other, holder)
			y.Check(y.Prod(replica).Lock.DeploymentID == holder.ID, "prod is %+v, want %s to hold it", y.Prod(replica), holder.ID)

			y.cluster.Disarm()
			y.Succeeds(replica, holder)
			y.Done(replica, other)
			return 2
		})
	},
}
