package scenarios

import (
	"net/http"

	"github.com/einmal/einmal/services/simulator"
)

var approvalExpiresBeforeResend = Scenario{
	Name:    "approval_expires_before_resend",
	Promise: "What was sent under a yes, and is in doubt when that ends, is never sent again: it is closed, or looked up until a person decides.",
	Injects: true,
	run: func(s *Stage) int {
		return s.EachKeys(brisk, func(t *Till) int {
			replica := t.Replica("EINMAL_APPROVAL_TTL=4s")
			t.psp.Next(confirm, simulator.Before, simulator.Reset)
			for _, operation := range []string{retrieve, "list", "search", cancel} { // nobody learns what became of it
				t.psp.NextAnswered(operation, simulator.Before, http.StatusInternalServerError, always)
			}
			a := t.Begin(replica, t.Pays(t.PutOrder(replica, large, "EUR")))
			t.Approve(replica, a.Operation)
			t.AwaitState(replica, a, "unknown")
			t.Await("the approval has ended", func() bool {
				return t.Count("SELECT count(*) FROM effects WHERE operation_id = $1 AND approved_until < (SELECT max(started_at) FROM attempts)", a.Operation) == 1
			})
			t.psp.Disarm()
			t.Withdrawn(replica, a, "approval-expired")
			t.Check(t.Count("SELECT count(*) FROM attempts WHERE operation_id = $1 AND kind = 'send'", a.Operation) == 1, "it was sent again")
			return 0
		})
	},
}
