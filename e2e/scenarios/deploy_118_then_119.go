package scenarios

import "github.com/einmal/einmal/services/simulator"

var deploy118Then119 = Scenario{
	Name:    "deploy_118_then_119",
	Promise: "An agent that gets no answer about build 118 and then deploys 119 is told that 118 is still under way; both come out, in order, once.",
	Injects: true,
	run: func(s *Stage) int {
		return s.EachClusterKeys(brisk, watched, func(y *Yard) int {
			replica := y.Replica()
			build118, build119 := y.Plans(), y.Plans()
			y.cluster.Next(send, simulator.After, simulator.Hang)
			y.Begin(replica, build118)
			y.cluster.AwaitFired(1)

			y.Locked(replica, build119, build118)
			again := y.Ask(replica, build118) // and who asks again with the key of 118 causes nothing
			y.Check(again.Outcome() == "in_progress", "118 again: got %v, want it in progress", again)
			y.Succeeds(replica, build118)
			y.Done(replica, build119) // the refusal has not used its key up
			y.Live(replica, build119)
			return 2
		})
	},
}
