package scenarios

import "github.com/einmal/einmal/e2e/faults"

var answerWithoutBody = Scenario{
	Name:    "answer_without_body",
	Promise: "An answer without its body, or with half of it, says nothing to an agent: it asks by key, and has the whole answer in the end.",
	Injects: true,
	run: func(s *Stage) int {
		return s.EachWay(s.Serve(""), func(e *Errand) int {
			for _, fault := range []faults.HTTPFault{faults.BareAnswer, faults.HalfAnswer} {
				e.proxy.Next(fault)
				result := e.Do(e.opens("open-" + map[faults.HTTPFault]string{faults.BareAnswer: "bare", faults.HalfAnswer: "half"}[fault]))
				e.EndsAll("the agent", result, 1)
				report := result.Steps[0].Report
				e.Check(string(report.Requests[0].Seen.Reading) == "unreadable" && len(report.Response.Body) > 0,
					"the first answer was read as %s, and the last has %d bytes", report.Requests[0].Seen, len(report.Response.Body))
			}
			for _, entry := range e.Entries() {
				e.OneTicket("of a step", entry)
			}
			return 2
		})
	},
}
