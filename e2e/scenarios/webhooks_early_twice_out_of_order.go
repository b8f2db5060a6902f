package scenarios

import "github.com/einmal/einmal/services/simulator"

var webhooksEarlyTwiceOutOfOrder = Scenario{
	Name:    "webhooks_early_twice_out_of_order",
	Promise: "Webhooks that come before the answer they belong to, twice, out of order or never change nothing about how a payment ends, and alarm nobody.",
	Injects: true,
	run: func(s *Stage) int {
		t := s.Till(patient)
		replica := t.Replica()
		t.psp.Tell(replica)

		// Early: the provider has told it, and then takes its time to answer.
		t.psp.Arm(simulator.Misfortune{Operation: confirm, When: simulator.After, Action: simulator.Delay, DelayMS: 300})
		t.psp.Next(event, simulator.Before, simulator.Duplicate)
		early := t.Done(replica, t.Pays(t.NewOrder(replica)))

		// Out of order: that it was authorised comes after that it was captured.
		t.psp.Next(event, simulator.Before, simulator.Reorder)
		late := t.Done(replica, t.Pays(t.NewOrder(replica)))
		t.Done(replica, t.Captures(late, "100.00"))

		// Never.
		t.psp.Next(event, simulator.Before, simulator.Lose)
		t.Done(replica, t.Captures(early, "60.00"))
		t.Done(replica, t.Refunds(early, "60.00"))

		t.psp.AwaitFired(4)
		t.psp.AwaitTold(7)
		reviews := t.Count("SELECT count(*) FROM reviews")
		t.Check(reviews == 0, "%d persons were asked", reviews)
		return 5
	},
}
