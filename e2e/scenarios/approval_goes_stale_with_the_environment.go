package scenarios

import "net/http"

var approvalGoesStaleWithTheEnvironment = Scenario{
	Name:    "approval_goes_stale_with_the_environment",
	Promise: "A yes counts for the environment that was shown: when another release has gone live since, it comes too late, and nothing is rolled out.",
	run: func(s *Stage) int {
		y := s.Yard(patient, usual)
		replica := y.Replica()
		first := y.Done(replica, y.Plans(protected))
		slow, quick := y.Begin(replica, y.Plans(protected)), y.Begin(replica, y.Plans(protected))
		shown := y.Approval(replica, slow.Operation)
		y.Approve(replica, quick.Operation)
		y.Succeeds(replica, quick)
		y.Problem("a yes to what was shown before", y.Decide(replica, approver, y.NewKey(), shown, "approve"), http.StatusConflict, "approval-stale")
		y.Is(replica, slow, "canceled")
		y.Problem("the release again", y.Ask(replica, slow), http.StatusConflict, "approval-stale")
		y.Check(y.cluster.Calls(send, slow.EffectKey) == 0, "the stale release was sent")

		back := y.Begin(replica, y.RollsBack(quick, ""))
		y.Check(y.Status(replica, back).Text("artifact") == first.Artifact && y.Status(replica, back).Text("state") == "awaiting_approval", "the rollback is %v", y.Status(replica, back))
		y.Approve(replica, back.Operation)
		y.Succeeds(replica, back)
		return 3
	},
}
