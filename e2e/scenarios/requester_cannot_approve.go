package scenarios

import "net/http"

var requesterCannotApprove = Scenario{
	Name:    "requester_cannot_approve",
	Promise: "Whoever has asked does not say yes, whatever else they may do; nor does an agent, an operator, or anybody of another account.",
	run: func(s *Stage) int {
		t := s.Till(patient)
		replica := t.Replica(t.People()...)
		own := t.Pays(t.PutOrder(replica, large, "EUR"))
		t.Accepted(own, t.AskAs(both, replica, own))
		approval, key := t.Approval(replica, own.Operation), t.NewKey()
		t.Check(approval.Text("requested_by") == both, "the question is %v", approval)
		t.Problem("the yes of who has asked", t.Decide(replica, both, key, approval, "approve"), http.StatusForbidden, "requester-cannot-approve")
		t.Problem("the no of who has asked", t.Decide(replica, both, t.NewKey(), approval, "reject"), http.StatusForbidden, "requester-cannot-approve")
		for _, token := range []string{agent, operator} {
			t.Problem("the yes of "+token, t.Decide(replica, token, t.NewKey(), approval, "approve"), http.StatusForbidden, "forbidden")
		}
		t.Problem("the yes of another account's", t.Decide(replica, stranger, t.NewKey(), approval, "approve"), http.StatusNotFound, "not-found")
		t.Check(t.State(replica, own).Text("state") == "awaiting_approval" && len(t.psp.Ledger()) == 0, "it is %v", t.State(replica, own))
		yes := t.Decide(replica, boss, key, approval, "approve") // the refused one has used no key up
		t.Check(yes.Status == http.StatusOK && yes.Text("approved_by") == boss, "the yes of another: got %v", yes)
		t.Succeeds(replica, own)
		return 1
	},
}
