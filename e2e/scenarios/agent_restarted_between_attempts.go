package scenarios

import "github.com/einmal/einmal/e2e/faults"

var agentRestartedBetweenAttempts = Scenario{
	Name:    "agent_restarted_between_attempts",
	Promise: "An agent that is killed while it does not know what became of its request goes on under the same key when it is back: one ticket.",
	Injects: true,
	run: func(s *Stage) int {
		return s.EachWay(s.Serve(""), func(e *Errand) int {
			opens := e.opens("open")
			e.proxy.Next(faults.LoseAnswer, faults.HoldRequest) // the attempt, and the question about it
			first := e.Start(opens)
			e.AwaitHeld()
			e.KillAgent(first)
			e.proxy.Drop()
			begun := e.Entry()
			e.Check(len(begun.Requests) == 1 && begun.Open(), "the journal has %d requests of an entry that is %s", len(begun.Requests), begun.Standing())

			e.EndsAll("the agent that is back", e.Do(opens), 1)
			e.Check(e.Entry().Key == begun.Key, "the key has changed from %s to %s", begun.Key, e.Entry().Key)
			e.OneTicket("after the restart", begun)
			again := e.Do(opens)
			e.EndsAll("the same steps again", again, 1)
			e.Check(again.Steps[0].Disposition == "existing", "the same step again is %s", again.Steps[0].Disposition)

			// The request of a killed agent may still be on its way when the next agent has begun, and arrive after it.
			late := e.opens("late")
			e.proxy.Next(faults.HoldRequest)
			first = e.Start(late)
			e.AwaitHeld()
			e.KillAgent(first)
			e.EndsAll("the agent that overtakes a request", e.Do(late), 1)
			e.proxy.Deliver()
			for _, entry := range e.Entries() {
				e.OneTicket("after the late request", entry)
			}
			return 2
		})
	},
}
