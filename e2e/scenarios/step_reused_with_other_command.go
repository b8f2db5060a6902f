package scenarios

import "strings"

var stepReusedWithOtherCommand = Scenario{
	Name:    "step_reused_with_other_command",
	Promise: "A step means one command: another one under its name is a question for a person, and nothing of its file is sent.",
	Injects: true,
	run: func(s *Stage) int {
		return s.EachWay(s.Serve(""), func(e *Errand) int {
			opens := e.opens("open")
			e.EndsAll("the agent", e.Do(opens), 1)
			other := opens.with("body", ticket{Project: "ops", Title: "another title"})
			for _, changed := range [][]todo{{other}, {e.opens("before"), other}, {opens.with("path", "/v1/elsewhere")}, {opens.with("retry", "never")}} {
				result := e.Do(changed...)
				e.Check(result.Status == 4 && result.Error == "step_changed" && strings.Contains(result.Log, "step open"), "exit status %d, %q, %s", result.Status, result.Error, result.Log)
			}
			e.Check(len(e.Entries()) == 1, "the journal has %d entries, want 1", len(e.Entries()))

			// A deliberate second action has a name of its own, whatever it says.
			e.EndsAll("the same command as another step", e.Do(opens, opens.with("step", "open-another")), 2)
			for _, entry := range e.Entries() {
				e.OneTicket("of each step", entry)
			}
			return 2
		})
	},
}
