package scenarios

import (
	"net/http"

	"github.com/einmal/einmal/e2e/faults"
	"github.com/einmal/einmal/e2e/harness"
)

var retryReusesTheApproval = Scenario{
	Name:    "retry_reuses_the_approval",
	Promise: "However often an operation is sent, before and after the yes, even beside a crash, a person is asked once, and it happens once.",
	Injects: true,
	run: func(s *Stage) int {
		t := s.Till(patient)
		replica := t.Replica()
		a := t.Begin(replica, t.Pays(t.PutOrder(replica, large, "EUR")))
		approval := t.Approval(replica, a.Operation)
		asksOnce := func() {
			again := t.Ask(replica, a)
			t.Check(waits(again) && again.Text("approval_id") == approval.Text("id") && again.Outcome() == "in_progress", "sent again: got %v, want it to wait for %s", again, approval.Text("id"))
		}
		asksOnce()
		t.Kill(replica)
		t.Restart(replica)
		asksOnce()

		proxy, key := t.HTTPProxy(replica), t.NewKey()
		proxy.Next(faults.LoseAnswer)
		lost := t.Do(harness.Call{
			Base: proxy.URL(), Method: http.MethodPost, Path: "/v1/approvals/" + approval.Text("id") + "/decision", Token: approver, Key: key,
			Body: encode(map[string]string{"decision": "approve", "fingerprint": approval.Text("fingerprint")}),
		})
		t.Check(lost.Err != nil, "the answer to the yes was not lost: %v", lost)
		yes := t.Decide(replica, approver, key, approval, "approve")
		t.Check(yes.Status == http.StatusOK && yes.Outcome() == "replayed" && yes.Text("state") == "approved", "the yes again: got %v", yes)
		t.Problem("a second yes", t.Decide(replica, approver, t.NewKey(), approval, "approve"), http.StatusConflict, "approval-decided")
		t.Kill(replica)
		t.Restart(replica)
		t.Succeeds(replica, a)
		again := t.Ask(replica, a)
		t.Check(again.Outcome() == "replayed" && again.Status == http.StatusCreated, "sent in the end: got %v, want the replay", again)
		t.Check(t.Count("SELECT count(*) FROM approvals") == 1, "%d questions were asked", t.Count("SELECT count(*) FROM approvals"))
		return 1
	},
}
