package scenarios

import "net/http"

var secondRefundAsks = Scenario{
	Name:    "second_refund_asks",
	Promise: "A payment's second refund waits for a person, holding what it takes; one that came to nothing is none to count.",
	run: func(s *Stage) int {
		t := s.Till(patient)
		replica := t.Replica()
		paid := t.Done(replica, t.Pays(t.NewOrder(replica)))
		t.Done(replica, t.Captures(paid, "100.00"))
		first := t.Begin(replica, t.Refunds(paid, "30.00"))
		t.Check(t.State(replica, first).Text("approval_id") == "", "the first refund asks: %v", t.State(replica, first))
		t.Succeeds(replica, first)
		second := t.Begin(replica, t.Refunds(paid, "20.00"))
		t.Check(t.State(replica, second).Text("state") == "awaiting_approval", "the second refund is %v", t.State(replica, second))
		beyond := t.Ask(replica, t.Refunds(paid, "50.01"))
		t.Problem("a refund of what the second one holds", beyond, http.StatusConflict, "refund-exceeds-remaining")
		t.Check(beyond.Text("remaining") == "50.00", "what remains is %v", beyond)
		t.Approve(replica, second.Operation)
		t.Succeeds(replica, second)

		third := t.Begin(replica, t.Refunds(paid, "50.00"))
		no := t.Decide(replica, approver, t.NewKey(), t.Approval(replica, third.Operation), "reject")
		t.Check(no.Status == http.StatusOK, "the no: got %v", no)
		t.Withdrawn(replica, third, "approval-rejected")

		// Nothing of another payment has happened yet but a refund that was withdrawn: the next is its first.
		other := t.Done(replica, t.Pays(t.NewOrder(replica)))
		t.Done(replica, t.Captures(other, "100.00"))
		t.Done(replica, t.Refunds(other, "100.00"))
		return 7
	},
}
