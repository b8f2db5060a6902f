package scenarios

import (
	"net/http"

	"github.com/einmal/einmal/services/simulator"
)

var reportedDigestDiffers = Scenario{
	Name:    "reported_digest_differs",
	Promise: "A rollout after which something else runs than was asked for, or half of it, is unknown and with a person, never called a success, and keeps its lock.",
	Injects: true,
	run: func(s *Stage) int {
		y := s.Yard(brisk, usual)
		replica := y.Replica()
		for _, action := range []simulator.Action{simulator.OtherDigest, simulator.Half} {
			y.cluster.Next(send, simulator.After, action)
			r := y.Begin(replica, y.Plans())
			review := y.WithPerson(replica, r)
			status := y.Is(replica, r, "unknown")
			y.Check(status.Text("reported_artifact") != "" && status.Text("reported_artifact") != r.Artifact && status.Text("reason") != "",
				"the deployment is %v, want it to say what runs", status)
			other := y.Plans()
			y.Locked(replica, other, r)
			resolved := y.Resolve(replica, review, "failed")
			y.Check(resolved.Status == http.StatusOK, "a person's word: got %v, want 200", resolved)
			y.Is(replica, r, "failed")
			y.Done(replica, other)
			y.Live(replica, other)
		}
		return 4
	},
}
