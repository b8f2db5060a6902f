package scenarios

import (
	"net/http"

	"github.com/einmal/einmal/e2e/faults"
)

var personSaysFailedThenMoneyArrives = Scenario{
	Name:    "person_says_failed_then_money_arrives",
	Promise: "When a refund that a person has called failed arrives after all, a person is asked about both; no state changes, and nothing is set free.",
	Injects: true,
	run: func(s *Stage) int {
		return s.EachKeys(brisk, func(t *Till) int {
			paying := t.Replica()
			paid := t.Done(paying, t.Pays(t.NewOrder(paying)))
			t.Done(paying, t.Captures(paid, "100.00"))
			t.endReplicas()

			road := t.HTTPProxy(t.psp.Service)
			replica := t.Replica("EINMAL_PROVIDER_URL=" + road.URL() + "/psp")
			t.psp.Tell(replica)
			t.psp.Down("list_refunds")
			road.Next(faults.HoldRequest)
			back := t.Begin(replica, t.Refunds(paid, "60.00"))
			t.Await("the refund is on its way", func() bool { return road.Held() == 1 })
			review := t.ended(replica, back).Text("review_id")
			answer := t.Resolves(replica, review, t.NewKey(), "failed", "")
			t.Check(answer.Status == http.StatusOK, "a person's word: got %v", answer)
			t.Fails(replica, back, "effect-refused")

			t.deliver(road)
			against := t.Asked(replica, "contradiction", back.Operation)
			t.Check(against.State == "open" && against.says(review, "failed") && against.says("refund", "succeeded"), "the review is %+v, want it to name the word and the money", against)
			op := t.State(replica, back)
			t.Check(op.Text("state") == "failed" && op.Text("effect") == "none", "the refund has become %v, want it failed as it was told", op)
			t.Check(t.Count("SELECT count(*) FROM payments WHERE id = $1 AND refunded_minor = 0 AND refund_reserved_minor = 0", paid.Resource) == 1, "the payment was changed")
			return 3
		})
	},
}
