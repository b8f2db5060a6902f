package scenarios

import "net/http"

var alreadyCapturedIsSuccess = Scenario{
	Name:    "already_captured_is_success",
	Promise: "A provider that refuses a capture or cancel because it is done already tells of the object, not of our send: it is looked at, and is success.",
	Injects: true,
	run: func(s *Stage) int {
		return s.EachKeys(patient, func(t *Till) int {
			replica := t.Replica()
			done := func(what string, form string, a *Act, paid *Act) {
				reference := t.State(replica, paid).Text("reference")
				answer := t.psp.Itself("/payment_intents/"+reference+"/"+what, form)
				t.Check(answer.Status == http.StatusOK, "%s at the provider itself: %v", what, answer)
				t.Struck()
				op := t.ended(replica, t.Begin(replica, a))
				t.Check(op.Text("state") == "succeeded" && op.Text("reference") == reference, "%s of what is done already has become %v, want it succeeded", what, op)
			}
			first, second := t.Done(replica, t.Pays(t.NewOrder(replica))), t.Done(replica, t.Pays(t.NewOrder(replica)))
			done(capture, "amount_to_capture=10000", t.Captures(first, "100.00"), first)
			done(cancel, "", t.Cancels(second), second)

			// Another amount is another capture than ours: a person must say what that means.
			third := t.Done(replica, t.Pays(t.NewOrder(replica)))
			reference := t.State(replica, third).Text("reference")
			t.psp.Itself("/payment_intents/"+reference+"/capture", "amount_to_capture=1")
			op := t.ended(replica, t.Begin(replica, t.Captures(third, "100.00")))
			t.Check(op.Text("state") == "unknown" && op.Text("review_id") != "", "a capture of another amount has become %v, want it with a person", op)
			return 6
		})
	},
}
