package scenarios

import (
	"net/http"
	"strings"
)

var retaggedImage = Scenario{
	Name:    "retagged_image",
	Promise: "A tag that was moved between two attempts, or between a deployment and its rollback, moves nothing: the digest is what is deployed.",
	run: func(s *Stage) int {
		y := s.Yard(patient, usual)
		replica := y.Replica()
		tagged := func(tag string, r *Release) *Release {
			again := *r
			again.Body = strings.Replace(r.Body, "web@", "web:"+tag+"@", 1)
			return &again
		}
		first := y.Plans()
		y.Done(replica, tagged("v1", first))
		moved := y.Ask(replica, tagged("latest", first)) // the same digest under another tag is the same command
		y.Check(moved.Status == http.StatusCreated && moved.Outcome() == "replayed" && moved.Text("artifact") == first.Artifact, "under another tag: got %v", moved)
		first.ID, first.Operation = moved.Text("id"), moved.Text("operation_id")

		second := y.Done(replica, tagged("v1", y.Plans())) // v1 is another image now
		conflict := *second
		conflict.Key = first.Key
		y.Problem("the key of the first with the digest of the second", y.Ask(replica, &conflict), http.StatusUnprocessableEntity, "idempotency-key-reused")
		back := y.Done(replica, y.RollsBack(second, ""))
		y.Check(y.Status(replica, back).Text("artifact") == first.Artifact, "the rollback is %v, want the first digest", y.Status(replica, back))
		tagOnly := y.Plans(func(p *plan) { p.Artifact = "web:v1" })
		y.Problem("the tag alone", y.Ask(replica, tagOnly), http.StatusUnprocessableEntity, "mutable-reference")
		return 3
	},
}
