package scenarios

import (
	"net/http"
	"strings"

	"github.com/einmal/einmal/e2e/harness"
)

var approvalBindsThePayload = Scenario{
	Name:    "approval_binds_the_payload",
	Promise: "A yes to one payment is a yes to exactly that: not to another amount under its key, not to another payment of the same amount.",
	run: func(s *Stage) int {
		t := s.Till(patient)
		replica := t.Replica()
		order := t.PutOrder(replica, "12000.00", "EUR")
		first := t.Begin(replica, t.Pays(order))
		approval := t.Approval(replica, first.Operation)
		facts := string(approval.Body)
		t.Check(waits(t.State(replica, first)) || t.State(replica, first).Text("approval_id") == approval.Text("id"), "the payment is %v", t.State(replica, first))
		for _, fact := range []string{`"payee":"` + strings.ReplaceAll(order.Payee, "&", `\u0026`) + `"`, `"amount":"12000.00"`, `"currency":"EUR"`, `"order":"` + order.ID + `"`} {
			t.Check(strings.Contains(facts, fact) || strings.Contains(facts, strings.ReplaceAll(fact, `\u0026`, "&")), "the question says %s, and nothing of %s", facts, fact)
		}

		dearer := *first
		dearer.Body = strings.Replace(first.Body, "12000.00", "12001.00", 1)
		t.Problem("another amount under the key", t.Ask(replica, &dearer), http.StatusUnprocessableEntity, "idempotency-key-reused")

		second := t.Begin(replica, t.Pays(t.PutOrder(replica, "12000.00", "EUR")))
		other := t.Approval(replica, second.Operation)
		t.Check(other.Text("id") != approval.Text("id") && other.Text("fingerprint") != approval.Text("fingerprint"), "two payments ask one question: %v, %v", approval, other)
		crossed := t.Do(harness.Call{
			Base: replica.URL(), Method: http.MethodPost, Path: "/v1/approvals/" + other.Text("id") + "/decision", Token: approver, Key: t.NewKey(),
			Body: encode(map[string]string{"decision": "approve", "fingerprint": approval.Text("fingerprint")}),
		})
		t.Problem("a yes to the one with the fingerprint of the other", crossed, http.StatusConflict, "approval-stale")
		t.Problem("a decision of the agent", t.Decide(replica, agent, t.NewKey(), approval, "approve"), http.StatusForbidden, "forbidden")
		t.Check(len(t.psp.Ledger()) == 0, "before anybody has said yes the provider has %s", summary(t.psp.Ledger()))

		t.Approve(replica, first.Operation)
		t.Succeeds(replica, first)
		t.Check(len(t.psp.Ledger()) == 1 && t.psp.Ledger()[0].AmountMinor == 1200000, "the provider has %s", summary(t.psp.Ledger()))
		t.Check(t.State(replica, second).Text("state") == "awaiting_approval", "the other payment is %v", t.State(replica, second))
		no := t.Decide(replica, approver, t.NewKey(), other, "reject")
		t.Check(no.Status == http.StatusOK && no.Text("state") == "rejected", "the no: got %v", no)
		t.Withdrawn(replica, second, "approval-rejected")
		return 1
	},
}
