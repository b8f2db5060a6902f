package deployments_test

import (
	"testing"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/problem"
)

// Two installations share a cluster, a name, an account and a key.
func TestAKeyThatAnotherInstallationHasUsed(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		// The other's rollout is of the same artifact, and would pass for ours.
		refused := func(t *testing.T) (running, deployment, operation) {
			c := startCluster(t, kind, 1)
			theirs := startAt(t, kind, c)
			theirs.succeeds(t, "k", `{"service":"api","environment":"prod","artifact":"`+image("a")+`"}`)
			ours := startAt(t, kind, c)
			d := ours.accepted(t, ours.deploy(t, "k", command("a", "")))
			return ours, d, ours.withPerson(t, d)
		}

		t.Run("is a question for a person, whatever is found by it, and keeps the lock", func(t *testing.T) {
			s, d, op := refused(t)
			for _, k := range []string{"r1", "r2"} {
				s.agent().Send(t, "POST", "/v1/operations/"+op.ID+"/reconcile", nothing, key("%s", k))
			}
			op = s.operation(t, op.ID)
			if op.State != "unknown" || op.NextAction != "ask_human" || op.Reference != "" || len(op.Attempts) != 1 || op.Attempts[0].Outcome != "ambiguous" {
				t.Errorf("%+v", op)
			}
			var open struct{ Items []struct{ ID, Kind string } }
			s.agent().Send(t, "GET", "/v1/reviews?state=open", "").Decode(t, &open)
			if len(open.Items) != 1 || open.Items[0].Kind != "contradiction" || open.Items[0].ID != op.ReviewID {
				t.Errorf("open reviews: %+v", open.Items)
			}
			if env := s.prod(t); env.Lock == nil || env.Lock.DeploymentID != d.ID || env.live() != "" {
				t.Errorf("%+v", env)
			}
			s.healthy(t)
		})

		for _, state := range []string{"succeeded", "failed"} {
			t.Run("is "+state+" by a person's word, which sets the lock free", func(t *testing.T) {
				s, d, op := refused(t)
				a := s.operator().Send(t, "POST", "/v1/reviews/"+op.ReviewID+"/resolution", `{"state":"`+state+`","evidence":"on the dashboard"}`, key("r"))
				if a.Status != 200 {
					t.Fatalf("%s", a)
				}
				s.is(t, d.ID, state)
				s.succeeds(t, "next", command("b", ""))
				s.healthy(t)
			})
		}

		t.Run("breaks nothing off that is not ours", func(t *testing.T) {
			s, d, _ := refused(t)
			no := s.about(t, d.ID, "cancel", "c", nothing)
			expect(t, no, 409, problem.OperationRunning)
			if stops := s.cluster.ledger("stop"); len(stops) != 0 || s.now(t, d.ID).State != "unknown" {
				t.Errorf("%d stops, %+v", len(stops), s.now(t, d.ID))
			}
			s.healthy(t)
		})
	})
}

// Nor does what is found under the key of a stop say that this stop has come.
func TestAStopUnderAKeyThatAnotherInstallationHasUsed(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		c := startCluster(t, kind, patience)
		theirs, ours := startAt(t, kind, c), startAt(t, kind, c)
		staging := theirs.accepted(t, theirs.deploy(t, "theirs", `{"service":"web","environment":"staging","artifact":"`+image("a")+`"}`))
		d := ours.accepted(t, ours.deploy(t, "ours", command("a", "")))
		await(t, "both go on", func() bool { return len(c.ledger("rollout")) == 2 })
		theirs.about(t, staging.ID, "cancel", "c", nothing)
		theirs.is(t, staging.ID, "canceled")

		var stop operation
		ours.about(t, d.ID, "cancel", "c", nothing).Decode(t, &stop)
		await(t, "a person is asked", func() bool { stop = ours.operation(t, stop.ID); return stop.ReviewID != "" })
		if stop.State != "unknown" || ours.now(t, d.ID).State != "running" {
			t.Errorf("%+v, %+v", stop, ours.now(t, d.ID))
		}
		a := ours.operator().Send(t, "POST", "/v1/reviews/"+stop.ReviewID+"/resolution", `{"state":"failed","evidence":"it was theirs"}`, key("r"))
		if a.Status != 200 {
			t.Fatalf("%s", a)
		}
		ours.about(t, d.ID, "cancel", "again", nothing)
		ours.is(t, d.ID, "canceled")
		ours.healthy(t)
	})
}
