package scenarios

import "net/http"

var rollbackTargetMustHaveSucceeded = Scenario{
	Name:    "rollback_target_must_have_succeeded",
	Promise: "What never ran well is nothing to roll back to, nor is another service's release, nor nothing at all.",
	run: func(s *Stage) int {
		y := s.Yard(patient, usual)
		replica := y.Replica()
		service := func(name string) func(*plan) { return func(p *plan) { p.Service = name } }
		only := y.Done(replica, y.Plans())
		refused := func(what string, r *Release) {
			answer := y.Ask(replica, r)
			y.Problem(what, answer, http.StatusConflict, "no-rollback-target")
			y.Replayed(what+", again", y.Ask(replica, r), answer)
		}
		refused("a rollback of the first release", y.RollsBack(only, ""))
		other := y.Done(replica, y.Plans(service("api")))
		failing := y.Begin(replica, y.Plans(service("failing")))
		y.Is(replica, failing, "failed")
		live := y.Done(replica, y.Plans())
		refused("a rollback to another service's release", y.RollsBack(live, other.ID))
		refused("a rollback to a release that failed", y.RollsBack(live, failing.ID))
		refused("a rollback to itself", y.RollsBack(live, live.ID))
		refused("a rollback to nobody's", y.RollsBack(live, "dep_none"))
		back := y.Done(replica, y.RollsBack(live, only.ID))
		y.Check(y.Status(replica, back).Text("artifact") == only.Artifact, "the rollback is %v", y.Status(replica, back))
		return 5
	},
}
