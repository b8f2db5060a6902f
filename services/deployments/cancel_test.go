package deployments_test

import (
	"testing"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/problem"
)

func TestCancelingARollout(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		goingOn := func(t *testing.T) (running, deployment) {
			s := startAt(t, kind, startCluster(t, kind, patience))
			d := s.accepted(t, s.deploy(t, "k", command("a", "")))
			await(t, "the rollout goes on", func() bool { return len(s.cluster.ledger("rollout")) == 1 })
			return s, d
		}

		t.Run("breaks it off, which ends both operations, and gives the lock on", func(t *testing.T) {
			s, d := goingOn(t)
			next := s.accepted(t, s.deploy(t, "next", command("b", queued)))
			a := s.about(t, d.ID, "cancel", "c", nothing)
			var op operation
			a.Decode(t, &op)
			if a.Status != 202 || a.Outcome() != "accepted" || op.Type != "deployment.cancel" || op.Resource.ID != d.ID {
				t.Fatalf("%s", a)
			}
			if op = s.operation(t, op.ID, wait); op.State != "succeeded" || op.Response.Status != 200 {
				t.Errorf("%+v", op)
			}
			if d = s.now(t, d.ID); d.State != "canceled" || d.Reason == "" || d.FinishedAt == "" {
				t.Errorf("%+v", d)
			}
			expect(t, s.deploy(t, "k", command("a", "")), 409, problem.OperationCanceled)
			var again deployment
			replay := s.about(t, d.ID, "cancel", "c", nothing)
			replay.Decode(t, &again)
			if replay.Outcome() != "replayed" || again.State != "canceled" {
				t.Errorf("%s", replay)
			}
			expect(t, s.about(t, d.ID, "cancel", "again", nothing), 409, problem.OperationFinal)
			if stops := s.cluster.ledger("stop"); len(stops) != 1 {
				t.Errorf("%d stops", len(stops))
			}
			s.becomes(t, next.ID, "has its turn", func(d deployment) bool { return d.State == "running" })
			if env := s.prod(t); env.Lock.DeploymentID != next.ID || env.Version != 2 || env.live() != "" {
				t.Errorf("%+v", env)
			}
			s.about(t, next.ID, "cancel", "c2", nothing, wait)
			s.healthy(t)
		})

		t.Run("of which the answer is lost breaks it off once", func(t *testing.T) {
			s, d := goingOn(t)
			s.cluster.arm("stop", "after", "reset", "")
			a := s.about(t, d.ID, "cancel", "c", nothing, wait)
			var ended deployment
			a.Decode(t, &ended)
			if a.Status != 200 || a.Outcome() != "executed" || ended.State != "canceled" || len(s.cluster.ledger("stop")) != 1 {
				t.Errorf("%s, %d stops", a, len(s.cluster.ledger("stop")))
			}
			s.healthy(t)
		})

		t.Run("that is broken off half-way is not told as what was restored", func(t *testing.T) {
			s, d := goingOn(t)
			s.cluster.arm("stop", "after", "half", "")
			var stop operation
			s.about(t, d.ID, "cancel", "c", nothing).Decode(t, &stop)
			s.withPerson(t, d)
			await(t, "the stop is with a person", func() bool { stop = s.operation(t, stop.ID); return stop.ReviewID != "" })
			if d = s.is(t, d.ID, "unknown"); d.ReportedArtifact != "mixed" || s.prod(t).Lock == nil {
				t.Errorf("%+v", d)
			}
			expect(t, s.about(t, d.ID, "cancel", "c2", nothing), 409, problem.OperationRunning)
			s.healthy(t)
		})

		t.Run("that a person says was broken off keeps the lock until the cluster says so", func(t *testing.T) {
			s, d := goingOn(t)
			s.cluster.Arm(`{"target":"cluster","operation":"stop","when":"before","action":"lose","times":1000}`)
			s.cluster.Arm(`{"target":"cluster","operation":"lookup","when":"before","action":"lose","times":1000}`)
			var stop operation
			s.about(t, d.ID, "cancel", "c", nothing).Decode(t, &stop)
			await(t, "a person is asked", func() bool { stop = s.operation(t, stop.ID); return stop.ReviewID != "" })
			await(t, "the person has decided", func() bool {
				a := s.operator().Send(t, "POST", "/v1/reviews/"+stop.ReviewID+"/resolution", `{"state":"succeeded","evidence":"on the dashboard"}`, key("r"))
				return a.Status == 200
			})
			if now := s.now(t, d.ID); now.State != "running" || s.prod(t).Lock == nil {
				t.Errorf("%+v", now)
			}
			s.healthy(t)
		})

		t.Run("that has ended is refused, and keeps its end", func(t *testing.T) {
			s := start(t, kind)
			d := s.succeeds(t, "k", command("a", ""))
			no := s.about(t, d.ID, "cancel", "c", nothing)
			expect(t, no, 409, problem.OperationFinal)
			if again := s.about(t, d.ID, "cancel", "c", nothing); string(again.Body) != string(no.Body) || again.Outcome() != "replayed" {
				t.Errorf("%s", again)
			}
			expect(t, s.about(t, "dep_"+nobodyIs, "cancel", "d", nothing), 404, problem.NotFound)
			if s.now(t, d.ID).State != "succeeded" {
				t.Errorf("%+v", s.now(t, d.ID))
			}
			s.healthy(t)
		})

		t.Run("that ends before it is broken off stays what it became, and the cancelation says so", func(t *testing.T) {
			s := start(t, kind)
			s.cluster.arm("stop", "before", "delay", `,"delay_ms":600`)
			d := s.accepted(t, s.deploy(t, "k", command("a", "")))
			await(t, "the rollout goes on", func() bool { return len(s.cluster.ledger("rollout")) == 1 })
			a := s.about(t, d.ID, "cancel", "c", nothing, wait)
			expect(t, a, 409, problem.OperationFinal)
			s.is(t, d.ID, "succeeded")
			if n := len(s.cluster.ledger("stop")); n != 0 {
				t.Errorf("%d stops", n)
			}
			s.healthy(t)
		})

		t.Run("of which nothing has arrived keeps it from ever beginning", func(t *testing.T) {
			s := start(t, kind)
			s.cluster.arm("send", "before", "delay", `,"delay_ms":700`)
			d := s.accepted(t, s.deploy(t, "k", command("a", "")))
			s.is(t, d.ID, "running")
			a := s.about(t, d.ID, "cancel", "c", nothing, wait)
			if a.Status != 200 {
				t.Errorf("%s", a)
			}
			if d = s.is(t, d.ID, "canceled"); d.Reason == "" {
				t.Errorf("%+v", d)
			}
			s.succeeds(t, "next", command("b", ""))
			await(t, "the late request has arrived", func() bool {
				return len(s.cluster.Calls("cluster")) > 2
			})
			s.cluster.rolledOut("b")
			s.healthy(t)
		})
	})
}
