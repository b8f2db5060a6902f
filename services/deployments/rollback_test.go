package deployments_test

import (
	"testing"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/problem"
)

func TestARollback(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)
		first := s.succeeds(t, "a", command("a", ""))

		t.Run("of the first release has no target", func(t *testing.T) {
			expect(t, s.about(t, first.ID, "rollback", "r0", nothing), 409, problem.NoRollbackTarget)
		})
		second := s.succeeds(t, "b", command("b", ""))

		t.Run("of what is not live is refused", func(t *testing.T) {
			no := s.about(t, first.ID, "rollback", "r1", nothing)
			expect(t, no, 409, problem.NotLive)
			if again := s.about(t, first.ID, "rollback", "r1", nothing); again.Outcome() != "replayed" {
				t.Errorf("%s", again)
			}
			expect(t, s.about(t, "dep_"+nobodyIs, "rollback", "r2", nothing), 404, problem.NotFound)
			expect(t, s.globex().Send(t, "POST", "/v1/deployments/"+second.ID+"/rollback", nothing, key("r2")), 404, problem.NotFound)
		})

		t.Run("is an operation of its own, of exactly what was live before", func(t *testing.T) {
			back := s.approved(t, s.about(t, second.ID, "rollback", "r3", nothing))
			if back.Kind != "rollback" || back.RollbackOf != second.ID || back.Artifact != image("a") || back.OperationID == second.OperationID {
				t.Errorf("%+v", back)
			}
			s.is(t, back.ID, "succeeded")
			if again := s.about(t, second.ID, "rollback", "r3", nothing); again.Outcome() != "replayed" || again.Status != 201 {
				t.Errorf("%s", again)
			}
			if env := s.prod(t); env.live() != image("a") || env.Releases[0].DeploymentID != back.ID {
				t.Errorf("%+v", env)
			}
			if d := s.now(t, second.ID); d.State != "succeeded" {
				t.Errorf("%+v", d)
			}
		})

		t.Run("goes to a release that is named, if that succeeded", func(t *testing.T) {
			refused := s.deploy(t, "no", `{"service":"refused","environment":"prod","artifact":"`+image("c")+`"}`, wait)
			expect(t, refused, 409, problem.EffectRefused)
			failing := s.accepted(t, s.deploy(t, "fails", command("d", "")))
			s.cluster.Disarm()
			s.is(t, failing.ID, "succeeded")
			var op operation
			s.agent().Send(t, "GET", "/v1/operations", "", key("no")).Decode(t, &op)
			for k, to := range map[string]string{
				"another service": op.Resource.ID, "itself": failing.ID, "nobody": "dep_" + nobodyIs,
			} {
				expect(t, s.about(t, failing.ID, "rollback", k[:4], `{"to":"`+to+`"}`), 409, problem.NoRollbackTarget)
			}
			back := s.approved(t, s.about(t, failing.ID, "rollback", "to-b", `{"to":"`+second.ID+`"}`))
			if back.Artifact != image("b") {
				t.Errorf("%+v", back)
			}
			s.is(t, back.ID, "succeeded")
		})

		t.Run("to one that failed is refused", func(t *testing.T) {
			s.cluster.arm("send", "after", "half", "")
			d := s.accepted(t, s.deploy(t, "e", command("e", "")))
			resolution := `{"state":"failed","evidence":"seen on the dashboard"}`
			a := s.operator().Send(t, "POST", "/v1/reviews/"+s.withPerson(t, d).ReviewID+"/resolution", resolution, key("e-failed"))
			if a.Status != 200 {
				t.Fatalf("%s", a)
			}
			expect(t, s.about(t, s.prod(t).Releases[0].DeploymentID, "rollback", "to-e", `{"to":"`+d.ID+`"}`), 409, problem.NoRollbackTarget)
		})

		t.Run("while another deployment goes on is refused for now", func(t *testing.T) {
			slow := startAt(t, kind, startCluster(t, kind, long))
			d := slow.succeeds(t, "a", command("a", ""))
			going := slow.accepted(t, slow.deploy(t, "b", command("b", "")))
			expect(t, slow.about(t, d.ID, "rollback", "r", nothing), 409, problem.EnvironmentLocked)
			slow.is(t, going.ID, "succeeded")
			expect(t, slow.about(t, d.ID, "rollback", "r", nothing), 409, problem.NotLive)
		})
		s.healthy(t)
	})
}
