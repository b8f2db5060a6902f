package scenarios

import (
	"fmt"
	"net/http"
)

var lateSuccessContradictsFailure = Scenario{
	Name:    "late_success_contradicts_failure",
	Promise: "A webhook that says of a failed payment that it succeeded changes no state: a person is asked, and the order stays as it is.",
	Injects: true,
	run: func(s *Stage) int {
		t := s.Till(patient)
		replica := t.Replica("EINMAL_PSP_PAYMENT_METHOD=pm_card_chargeDeclined")
		o := t.NewOrder(replica)
		declined := t.Begin(replica, t.Pays(o))
		op := t.Fails(replica, declined, "payment-declined")

		event := fmt.Sprintf(`{"id":"evt_late","object":"event","type":"payment_intent.amount_capturable_updated","data":{"object":{"id":%q,"object":"payment_intent",
			"status":"requires_capture","amount":10000,"metadata":{"account_id":"acme","order_id":%q,"payment_id":%q,"einmal_effect_key":%q}}}}`,
			op.Text("reference"), o.ID, declined.Resource, declined.EffectKey)
		for range 2 {
			answer := t.psp.Signed(replica, event)
			t.Check(answer.Status == http.StatusOK, "the webhook: got %v, want 200", answer)
		}
		t.Struck()
		forged := t.Do(callHook(replica.URL(), event))
		t.Check(forged.Status == http.StatusUnauthorized, "a webhook that nobody has signed: got %v, want 401", forged)

		t.Fails(replica, declined, "payment-declined")
		reviews := t.Count("SELECT count(*) FROM reviews WHERE kind = 'contradiction' AND state = 'open' AND operation_id = $1", declined.Operation)
		t.Check(reviews == 1, "%d reviews are open about the contradiction, want 1", reviews)
		t.Check(t.OrderState(replica, o) == "open", "the order is %s, want it open as before", t.OrderState(replica, o))
		return 0
	},
}
