package scenarios

var pspDeclines = Scenario{
	Name:    "psp_declines",
	Promise: "A payment that is declined fails for good, its order can be paid by another, and the key of the first still answers that it failed.",
	run: func(s *Stage) int {
		t := s.Till(patient)
		declining := t.Replica("EINMAL_PSP_PAYMENT_METHOD=pm_card_chargeDeclined")
		o := t.NewOrder(declining)
		declined := t.Begin(declining, t.Pays(o))
		t.Fails(declining, declined, "payment-declined")
		t.Check(t.OrderState(declining, o) == "open", "the order is %s after the decline, want it open", t.OrderState(declining, o))
		t.endReplicas()

		replica := t.Replica()
		accepting := t.Done(replica, t.Pays(o))
		t.Check(accepting.Resource != declined.Resource, "one payment was declined and accepted")
		t.Fails(replica, declined, "payment-declined")
		t.Check(t.OrderState(replica, o) == "busy", "the order is %s, want it busy", t.OrderState(replica, o))
		return 1
	},
}
