package scenarios

import "github.com/einmal/einmal/services/simulator"

var killedBetweenSendAndSettle = Scenario{
	Name:    "killed_between_send_and_settle",
	Promise: "A process that is killed after the money moved and before it knows finds out after its restart, and moves nothing again.",
	Injects: true,
	run: func(s *Stage) int {
		return s.EachKeys(brisk, func(t *Till) int {
			replica := t.Replica()
			killed := func(operation string, a *Act) *Act {
				t.psp.Disarm()
				t.psp.Next(operation, simulator.After, simulator.Hang)
				t.Begin(replica, a)
				t.psp.AwaitFired(1)
				t.Kill(replica)
				t.Restart(replica)
				t.Succeeds(replica, a)
				return a
			}
			paid := killed(confirm, t.Pays(t.NewOrder(replica)))
			killed(capture, t.Captures(paid, "100.00"))
			killed(refund, t.Refunds(paid, "100.00"))
			return 3
		})
	},
}
