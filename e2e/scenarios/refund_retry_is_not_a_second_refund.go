package scenarios

import "github.com/einmal/einmal/services/simulator"

var refundRetryIsNotASecondRefund = Scenario{
	Name:    "refund_retry_is_not_a_second_refund",
	Promise: "A refund whose answer was lost is the same refund however often it is asked for, and another of the same amount is another.",
	Injects: true,
	run: func(s *Stage) int {
		return s.EachKeys(brisk, func(t *Till) int {
			replica := t.Replica()
			paid := t.Done(replica, t.Pays(t.NewOrder(replica)))
			t.Done(replica, t.Captures(paid, "100.00"))

			t.psp.Next(refund, simulator.After, simulator.Lose)
			first := t.Begin(replica, t.Refunds(paid, "10.00"))
			for range 5 {
				again := t.Ask(replica, first)
				t.Check(again.Err == nil && again.Header.Get("Operation-Id") == first.Operation, "asked again: got %v, want operation %s", again, first.Operation)
			}
			t.psp.AwaitFired(1)
			t.Succeeds(replica, first)
			again := t.Ask(replica, first)
			t.Check(again.Outcome() == "replayed" && again.Text("id") == first.Resource, "asked again in the end: got %v, want a replay with %s", again, first.Resource)

			second := t.Done(replica, t.Refunds(paid, "10.00"))
			t.Check(second.Resource != first.Resource, "two refunds are one")
			return 4
		})
	},
}
