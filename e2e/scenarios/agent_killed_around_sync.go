package scenarios

import (
	"strconv"

	"github.com/einmal/einmal/e2e/faults"
)

var agentKilledBeforeSync = Scenario{
	Name:    "agent_killed_before_sync",
	Promise: "What is not on disk was not sent: an agent killed at a sync of its journal has sent nothing that the journal does not have.",
	Injects: true,
	run: func(s *Stage) int {
		if !faults.CanTrace() {
			s.Skipf("no strace here, so no kill can be aimed at a sync")
		}
		return s.EachWay(s.Serve(""), func(e *Errand) (tickets int) {
			// An agent syncs its journal and the directory when it opens them, then an intention, an attempt, its answer, and the end. Syncs are
			// counted in each thread, so which of them is met is seen afterwards.
			const last, wanted = 14, 2
			unsent := 0
			for nth := 1; nth <= last && (nth <= 6 || unsent < wanted); nth++ {
				opens := e.opens("open-" + strconv.Itoa(nth))
				known := 0
				if nth > 1 {
					known = len(e.Entries())
				}
				strike := faults.AtSyscall{Syscalls: faults.Sync, Do: "signal=KILL", Nth: strconv.Itoa(1 + (nth-1)%6)}
				first := e.StartUnder(strike.Prefix(), opens)
				if result := e.Result(first); result.Status >= 0 {
					e.EndsAll("an agent that was not struck", result, 1)
					tickets++
					continue
				}
				e.Check(first.Killed(), "the agent has ended by itself: %s", first.Log())
				e.Struck()
				if entries := e.Entries(); len(entries) > known {
					entry := entries[known]
					sent := e.proxy.Writes(entry.Key)
					e.Check(sent <= len(entry.Attempts()), "%d requests were sent, and %d attempts are in the journal", sent, len(entry.Attempts()))
					if sent == 0 {
						unsent++
						e.Check(e.TicketsOf(entry.Key) == 0, "nothing was sent, and there is a ticket")
					}
				}
				e.EndsAll("the agent that is back", e.Do(opens), 1)
				e.OneTicket("after the restart", e.Entries()[known])
				tickets++
			}
			e.Check(unsent > 0, "no agent was killed between its intention and its request")
			e.Notef("%d agents were killed at the sync of what they were about to send", unsent)
			return tickets
		})
	},
}

var agentKilledAfterSync = Scenario{
	Name:    "agent_killed_after_sync",
	Promise: "An agent killed when its attempt was on disk finds the key there, whether or not the request has arrived: one ticket.",
	Injects: true,
	run: func(s *Stage) int {
		return s.EachWay(s.Serve(""), func(e *Errand) int {
			for i, arrives := range []bool{false, true} {
				opens := e.opens("open-" + strconv.FormatBool(arrives))
				e.proxy.Next(faults.HoldRequest)
				first := e.Start(opens)
				e.AwaitHeld()
				begun := e.Entries()[i]
				e.Check(len(begun.Attempts()) == 1, "a request has left, and %d attempts are in the journal", len(begun.Attempts()))
				e.KillAgent(first)
				if arrives {
					e.proxy.Deliver()
				} else {
					e.proxy.Drop()
				}
				e.EndsAll("the agent that is back", e.Do(opens), 1)
				after := e.Entries()[i]
				e.Check(after.Key == begun.Key, "the key has changed")
				e.OneTicket("after the restart", after)
			}
			return 2
		})
	},
}
