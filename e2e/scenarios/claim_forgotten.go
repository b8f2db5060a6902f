package scenarios

import (
	"net/http"
	"strings"

	"github.com/einmal/einmal/e2e/harness"
	"github.com/einmal/einmal/services/simulator"
)

var claimForgotten = Scenario{
	Name:    "claim_forgotten",
	Promise: "A database that was set back to an older copy sends nothing and takes no write until an operator accepts that; then a claim that it has forgotten, made again, moves the money once.",
	Injects: true,
	run: func(s *Stage) int {
		t := s.Till(brisk)
		replica := t.Replica("EINMAL_SEAL_EVERY=50ms")
		order, forgottenOrder, openOrder := t.NewOrder(replica), t.NewOrder(replica), t.NewOrder(replica)
		known := t.Done(replica, t.Pays(order))

		// What is open in the copy: its send is lost, and nothing is found out before the copy is made.
		t.psp.NextAnswered(create, simulator.Before, http.StatusServiceUnavailable, 1000)
		open := t.Begin(replica, t.Pays(openOrder))
		t.psp.AwaitFired(1)
		t.AwaitSealed()
		t.must(replica.Terminate())
		copied, err := t.db.Copy(t.ctx)
		t.must(err)

		// And what comes after it, with its effects.
		t.psp.Disarm()
		t.Restart(replica)
		t.Succeeds(replica, open)
		forgotten := t.Done(replica, t.Pays(forgottenOrder))
		t.AwaitSealed()
		t.must(replica.Terminate())
		t.must(t.db.SetBack(t.ctx, copied))
		t.Struck()

		t.Restart(replica)
		before := len(t.psp.calls())
		refused := t.Ask(replica, forgotten)
		t.Problem("a write to the older copy", refused, http.StatusServiceUnavailable, "store-rewound")
		t.Check(refused.Text("effect") == "unknown" && refused.Text("retry") == "same_key", "a write to the older copy: got %v", refused)
		read := t.Do(harness.Call{Base: replica.URL(), Method: http.MethodGet, Path: "/v1/operations/" + known.Operation})
		t.Check(read.Status == http.StatusOK, "a read of the older copy: got %v", read)
		for range 20 {
			t.Moment()
		}
		t.Check(len(t.psp.calls()) == before, "%d calls have left before an operator accepted", len(t.psp.calls())-before)
		out, err := t.db.Audit(t.ctx, "verify")
		t.Check(err != nil && strings.Contains(out, "cut tail"), "einmal audit verify says of the older copy: %s", out)

		said, err := t.db.Audit(t.ctx, "accept")
		t.must(err)
		t.Check(strings.Contains(said, "1 open effects are unknown"), "einmal audit accept says %q", said)
		t.Succeeds(replica, open) // it was asked about, and found
		t.Await("writes are taken again", func() bool { return t.Ask(replica, known).Outcome() == "replayed" })
		t.Begin(replica, forgotten) // the same key, and a new claim
		t.Succeeds(replica, forgotten)
		t.Notef("accepted: %s", strings.TrimSpace(said))
		return 3
	},
}
