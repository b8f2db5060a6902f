package scenarios

import (
	"strings"
	"time"

	agents "github.com/einmal/einmal/pkg/agent"
)

var retryAfterBeyondDeadline = Scenario{
	Name:    "retry_after_beyond_deadline",
	Promise: "An agent that is asked to wait longer than it has time hands over at once instead of waiting in vain, and sends nothing more.",
	Injects: true,
	run: func(s *Stage) int {
		t := s.Till(patient)
		replica := t.Replica()
		return s.EachWay(replica, func(e *Errand) int {
			o := t.NewOrder(replica)
			t.Done(replica, t.Pays(o))
			bounded := pays("pay", o).with("budget", map[string]int{"deadline_seconds": 4})
			report := e.Ends("an agent in a hurry", e.Do(bounded), e.status(4, 3), e.outcome(agents.NeedsPerson, agents.Unknown))
			e.Check(strings.Contains(report.Reason, "deadline"), "it hands over because %s", report.Reason)

			// order-busy asks for five seconds.
			last := report.Requests[len(report.Requests)-1]
			took := last.Ended.Sub(report.BegunAt)
			e.Check(e.lossy || took < 4*time.Second && len(report.Requests) == 1, "%d requests in %v", len(report.Requests), took)
			writes := e.proxy.Writes(report.Key)
			e.Ends("the next agent", e.Do(bounded), e.status(4, 3), e.outcome(agents.NeedsPerson, agents.Unknown))
			e.Check(e.proxy.Writes(report.Key) == writes, "%d requests were sent after the deadline", e.proxy.Writes(report.Key)-writes)
			return 1 // the other payment
		})
	},
}

// status is one on a way on which answers arrive, another on one on which they don't.
func (e *Errand) status(arrive, lost int) int {
	if e.lossy {
		return lost
	}
	return arrive
}

func (e *Errand) outcome(arrive, lost agents.Outcome) agents.Outcome {
	if e.lossy {
		return lost
	}
	return arrive
}
