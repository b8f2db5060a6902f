package scenarios

import "github.com/einmal/einmal/services/simulator"

var negativeWebhookLate = Scenario{
	Name:    "negative_webhook_late",
	Promise: "A webhook that says of an old attempt that it failed, and comes when the order is paid by another, changes nothing.",
	Injects: true,
	run: func(s *Stage) int {
		t := s.Till(patient)
		t.psp.Next(event, simulator.Before, simulator.Reorder) // that it was declined is told after that the other was accepted
		declining := t.Replica("EINMAL_PSP_PAYMENT_METHOD=pm_card_chargeDeclined")
		t.psp.Tell(declining)
		o := t.NewOrder(declining)
		declined := t.Begin(declining, t.Pays(o))
		t.Fails(declining, declined, "payment-declined")
		t.endReplicas()

		replica := t.Replica()
		t.psp.Tell(replica)
		paid := t.Done(replica, t.Pays(o))
		t.Check(t.psp.Events()[0].Attempts == 0 || t.psp.Events()[1].Copies == 0, "the webhook about the first attempt came before the second")
		t.Done(replica, t.Captures(paid, o.Amount))
		t.psp.AwaitTold(3)
		t.Check(t.OrderState(replica, o) == "paid", "the order is %s, want it paid", t.OrderState(replica, o))
		t.Fails(replica, declined, "payment-declined")
		t.Succeeds(replica, paid)
		t.Check(t.Count("SELECT count(*) FROM reviews") == 0, "a person was asked about a no that came late")
		return 2
	},
}
