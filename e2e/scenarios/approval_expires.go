package scenarios

import (
	"net/http"

	"github.com/einmal/einmal/e2e/harness"
)

var approvalExpires = Scenario{
	Name:    "approval_expires",
	Promise: "A question that nobody answers in time ends its operation, frees what that held, and can't be answered any more.",
	run: func(s *Stage) int {
		t := s.Till(patient)
		replicas := []*harness.Service{t.Replica("EINMAL_APPROVAL_TTL=1s"), t.Replica("EINMAL_APPROVAL_TTL=1s")}
		order := t.PutOrder(replicas[0], large, "EUR")
		asked := t.Begin(replicas[0], t.Pays(order))
		approval := t.Approval(replicas[0], asked.Operation)
		t.Check(t.OrderState(replicas[0], order) == "busy", "while a person is asked the order is %s", t.OrderState(replicas[0], order))
		t.Withdrawn(replicas[1], asked, "approval-expired")
		t.Check(t.OrderState(replicas[0], order) == "open", "in the end the order is %s", t.OrderState(replicas[0], order))
		t.Problem("a yes that comes too late", t.Decide(replicas[0], approver, t.NewKey(), approval, "approve"), http.StatusConflict, "approval-expired")
		again := t.Begin(replicas[1], t.Pays(order))
		t.Check(t.Approval(replicas[1], again.Operation).Text("id") != approval.Text("id"), "the new payment has the old question")
		t.Withdrawn(replicas[0], again, "approval-expired")
		return 0
	},
}
