package scenarios

import (
	"strings"

	"github.com/einmal/einmal/e2e/faults"
)

var twoAgentsOneJournal = Scenario{
	Name:    "two_agents_one_journal",
	Promise: "A journal has one writer: a second agent is told so, by the name of the file, and sends nothing; afterwards it finds what the first has done.",
	Injects: true,
	run: func(s *Stage) int {
		return s.EachWay(s.Serve(""), func(e *Errand) int {
			opens := e.opens("open")
			e.proxy.Next(faults.HoldRequest)
			first := e.Start(opens)
			e.AwaitHeld()
			refused := e.Do(opens)
			e.Check(refused.Status == 1 && refused.Error == "journal_locked" && strings.Contains(refused.Log, e.journal),
				"the second agent: exit status %d, %q, %s", refused.Status, refused.Error, refused.Log)
			e.Check(e.proxy.Writes(e.Entry().Key) == 1, "%d requests have come, want 1", e.proxy.Writes(e.Entry().Key))
			e.proxy.Deliver()
			e.EndsAll("the first agent", e.Result(first), 1)

			second := e.Do(opens)
			e.EndsAll("the second agent, afterwards", second, 1)
			e.Check(second.Steps[0].Disposition == "existing", "the second agent has found it %s", second.Steps[0].Disposition)
			e.OneTicket("of two agents", e.Entry())
			return 1
		})
	},
}
