package scenarios

import "net/http"

var approvalHoldsNoLock = Scenario{
	Name:    "approval_holds_no_lock",
	Promise: "Who waits for a person holds no environment. A yes takes the lock; if somebody has it by then, the release fails, or waits its turn as it said.",
	run: func(s *Stage) int {
		y := s.Yard(patient, watched)
		replica := y.Replica()
		rejects, waits, holder := y.Begin(replica, y.Plans(protected)), y.Begin(replica, y.Plans(protected, queued)), y.Begin(replica, y.Plans(protected))
		y.Check(y.Environment(replica, "production").Lock == nil && len(y.Environment(replica, "production").Queue) == 0,
			"while people are asked production is %+v", y.Environment(replica, "production"))
		y.Approve(replica, holder.Operation)
		y.cluster.AwaitRollout(holder.EffectKey)

		y.Approve(replica, rejects.Operation)
		y.Is(replica, rejects, "failed")
		again := y.Ask(replica, rejects)
		y.Problem("the release that does not wait", again, http.StatusConflict, "environment-locked")
		y.Check(again.Outcome() == "replayed" && again.Text("retry") == "new_key", "the release that does not wait: got %v, want it final", again)
		y.Approve(replica, waits.Operation)
		y.Check(y.Status(replica, waits).Text("state") == "queued", "the release that waits is %v", y.Status(replica, waits))

		y.Succeeds(replica, holder)
		y.Is(replica, waits, "canceled") // production is not what was shown any more
		y.Problem("the release that has waited", y.Ask(replica, waits), http.StatusConflict, "approval-stale")
		y.Check(y.cluster.Calls(send, waits.EffectKey) == 0 && y.cluster.Calls(send, rejects.EffectKey) == 0, "a release was sent that was not to be")
		y.Check(y.Environment(replica, "production").Lock == nil, "in the end production is %+v", y.Environment(replica, "production"))
		next := y.Done(replica, y.Plans(protected))
		y.Check(y.Status(replica, next).Text("state") == "succeeded", "the next release is %v", y.Status(replica, next))
		return 2
	},
}
