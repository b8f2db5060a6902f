package scenarios

import (
	agents "github.com/einmal/einmal/pkg/agent"
)

var businessFailureIsNotRetried = Scenario{
	Name:    "business_failure_is_not_retried",
	Promise: "What the business has refused for good an agent does not try again, however often it is asked to, and whatever it is called.",
	Injects: true,
	run: func(s *Stage) int {
		t := s.Till(patient)
		replica := t.Replica("EINMAL_PSP_PAYMENT_METHOD=pm_card_chargeDeclined")
		return s.EachWay(replica, func(e *Errand) int {
			declined := pays("pay", t.NewOrder(replica))
			report := e.Ends("the agent", e.Do(declined), 2, agents.Refused)
			e.Check(report.Operation.State == "failed" && report.Effect == "none", "the operation is %+v, effect %s", report.Operation, report.Effect)
			writes, calls := e.proxy.Writes(report.Key), len(t.psp.calls())
			for range 2 {
				e.Ends("the next agent", e.Do(declined, pays("next", t.NewOrder(replica))), 2, agents.Refused)
			}
			e.Check(e.proxy.Writes(report.Key) == writes && len(t.psp.calls()) == calls, "it was sent again after the refusal")
			return 0
		})
	},
}

var businessRetryNamesItsPredecessor = Scenario{
	Name:    "business_retry_names_its_predecessor",
	Promise: "A second try of what was refused is a step of its own that names the first; of what is open, done or tried again already there is none.",
	Injects: true,
	run: func(s *Stage) int {
		t := s.Till(patient)
		replica := t.Replica()
		return s.EachWay(replica, func(e *Errand) int {
			o := t.NewOrder(replica)
			wrong := pays("pay", order{ID: o.ID, Amount: "99.00", Currency: o.Currency})
			right := pays("pay-again", o).with("retry_of", "pay")

			missing := e.Do(right)
			e.Check(missing.Status == 1 && missing.Error == "invalid", "a retry of nothing: exit status %d, %q", missing.Status, missing.Error)
			refused := e.Ends("another amount than the order's", e.Do(wrong), 2, agents.Refused)
			changed := e.Do(pays("pay", o))
			e.Check(changed.Status == 4 && changed.Error == "step_changed", "the step with another command: exit status %d, %q", changed.Status, changed.Error)

			done := e.Do(right)
			e.EndsAll("the second try", done, 1)
			e.Check(done.Steps[0].Key != refused.Key && done.Steps[0].RetryOf == "pay", "the second try is %+v", done.Steps[0].Report)
			for _, of := range []string{"pay", "pay-again"} {
				third := e.Do(pays("third", o).with("retry_of", of))
				e.Check(third.Status == 4 && third.Error == "retry_of_open_step", "a retry of %s: exit status %d, %q", of, third.Status, third.Error)
			}
			return 1
		})
	},
}
