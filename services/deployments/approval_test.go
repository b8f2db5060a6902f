package deployments_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/problem"
	"github.com/einmal/einmal/services/deployments"
)

// toProduction is command for the environment for which a person has to say yes.
func toProduction(digit, more string) string {
	return strings.Replace(command(digit, more), `"prod"`, `"production"`, 1)
}

// production reads acme's environment.
func (r running) production(t *testing.T) (e environment) {
	t.Helper()
	r.agent().Send(t, "GET", "/v1/environments/production", "").Decode(t, &e)
	return e
}

func TestADeploymentThatAsks(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)
		var first deployment

		t.Run("holds nothing, shows what will happen, and goes out with a yes", func(t *testing.T) {
			first = s.accepted(t, s.deploy(t, "a", toProduction("a", "")))
			if first.State != "awaiting_approval" || s.production(t).Lock != nil {
				t.Errorf("%+v in %+v", first, s.production(t))
			}
			facts := map[string]any{
				"kind": "deploy", "environment": "production", "service": "web", "artifact": image("a"), "rollback_possible": false, "deployment": first.ID,
			}
			if got := s.approval(t, first); cmp.Diff(facts, got.Facts) != "" || got.RequestedBy != "demo-agent" || got.State != "pending" {
				t.Errorf("%+v", got)
			}
			if yes := s.decide(t, "yes-a", first, "approve"); yes.Status != 200 {
				t.Errorf("%s", yes)
			}
			s.is(t, first.ID, "succeeded")
			second := s.accepted(t, s.deploy(t, "b", toProduction("b", "")))
			got := s.approval(t, second)
			if got.Facts["current_release"] != image("a") || got.Facts["rollback_possible"] != true || !strings.Contains(got.Consequence, image("b")) {
				t.Errorf("%+v", got)
			}
			if no := s.decide(t, "no-b", second, "reject"); no.Status != 200 {
				t.Errorf("%s", no)
			}
			d := s.is(t, second.ID, "canceled")
			if !strings.Contains(d.Reason, "demo-approver has said no") {
				t.Errorf("%+v", d)
			}
			expect(t, s.deploy(t, "b", toProduction("b", "")), 409, problem.ApprovalRejected)
		})

		t.Run("can be canceled while it waits", func(t *testing.T) {
			d := s.accepted(t, s.deploy(t, "c", toProduction("c", "")))
			if a := s.about(t, d.ID, "cancel", "cancel-c", nothing); a.Status != 200 {
				t.Errorf("%s", a)
			}
			if got := s.approval(t, d); got.State != "stale" {
				t.Errorf("%+v", got)
			}
			expect(t, s.decide(t, "late-c", d, "approve"), 409, problem.ApprovalStale)
		})

		t.Run("is stale when its service's release is another, and a rollback too", func(t *testing.T) {
			d := s.accepted(t, s.deploy(t, "d", toProduction("d", "")))
			next := s.approved(t, s.deploy(t, "e", toProduction("e", "")))
			s.is(t, next.ID, "succeeded")
			expect(t, s.decide(t, "late-d", d, "approve"), 409, problem.ApprovalStale)
			s.is(t, d.ID, "canceled")
			back := s.accepted(t, s.about(t, next.ID, "rollback", "back", nothing))
			if got := s.approval(t, back).Facts; got["kind"] != "rollback" || got["rollback_of"] != next.ID || got["artifact"] != image("a") || got["current_release"] != image("e") {
				t.Errorf("%v", got)
			}
			again := s.approved(t, s.deploy(t, "f", toProduction("f", "")))
			s.is(t, again.ID, "succeeded")
			expect(t, s.decide(t, "late-back", back, "approve"), 409, problem.ApprovalStale)
		})

		t.Run("is compared with the version that it expects when a person says yes", func(t *testing.T) {
			version := s.production(t).Version
			d := s.accepted(t, s.deploy(t, "g", toProduction("0", `,"expected_version":`+strconv.Itoa(version))))
			expect(t, s.deploy(t, "h", toProduction("1", `,"expected_version":`+strconv.Itoa(version+1))), 409, problem.EnvironmentChanged)
			s.decide(t, "yes-g", d, "approve")
			s.is(t, d.ID, "succeeded")
		})
		s.healthy(t)
	})
}

// What a person has let go while another rollout holds the environment.
func TestAnApprovedDeploymentFindsALock(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		const rollout = 4 * time.Second
		s := startAt(t, kind, startCluster(t, kind, rollout), func(c *deployments.Config) { c.ApprovalTTL = rollout })
		goes := s.accepted(t, s.deploy(t, "b", toProduction("b", "")))
		waits := s.accepted(t, s.deploy(t, "c", toProduction("c", queued)))
		holder := s.approved(t, s.deploy(t, "a", toProduction("a", "")))
		s.is(t, holder.ID, "running")

		if yes := s.decide(t, "yes-b", goes, "approve"); yes.Status != 200 {
			t.Fatalf("%s", yes)
		}
		s.is(t, goes.ID, "failed")
		no := expect(t, s.deploy(t, "b", toProduction("b", "")), 409, problem.EnvironmentLocked)
		if no.Holder == nil || no.Holder.DeploymentID != holder.ID || no.Retry != problem.RetryNewKey {
			t.Errorf("%+v", no)
		}
		if yes := s.decide(t, "yes-c", waits, "approve"); yes.Status != 200 {
			t.Fatalf("%s", yes)
		}
		if d := s.now(t, waits.ID); d.State != "queued" || d.QueuePosition != 1 {
			t.Errorf("%+v", d)
		}
		unasked := s.operator().Send(t, "PUT", "/v1/environments/production", `{"approval_required":false}`, key("unasked"))
		if unasked.Status != 200 {
			t.Fatalf("%s", unasked)
		}
		last := s.accepted(t, s.deploy(t, "d", toProduction("d", queued)))

		s.is(t, holder.ID, "succeeded")
		s.is(t, waits.ID, "canceled") // its time is over; and the environment is another, too
		again := s.deploy(t, "c", toProduction("c", queued)).Problem(t)
		if again.Code != problem.ApprovalExpired && again.Code != problem.ApprovalStale {
			t.Errorf("%+v", again)
		}
		if n := len(s.cluster.ledger("rollout")); n > 2 {
			t.Errorf("%d rollouts", n)
		}
		s.is(t, last.ID, "succeeded") // the lock was passed on
		s.healthy(t)
	})
}

// What waits for the lock without a yes, while somebody says that the environment needs one.
func TestAnEnvironmentThatIsProtectedWhileDeploymentsWait(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := startAt(t, kind, startCluster(t, kind, time.Second))
		holder := s.accepted(t, s.deploy(t, "a", command("a", "")))
		waits := []deployment{s.accepted(t, s.deploy(t, "b", command("b", queued))), s.accepted(t, s.deploy(t, "c", command("c", queued)))}
		if a := s.operator().Send(t, "PUT", "/v1/environments/prod", `{"approval_required":true}`, key("protect")); a.Status != 200 || s.now(t, holder.ID).State == "succeeded" {
			t.Fatalf("%s", a)
		}
		s.is(t, holder.ID, "succeeded")
		for i, k := range []string{"b", "c"} {
			if d := s.is(t, waits[i].ID, "failed"); d.FencingToken != 0 || !strings.Contains(d.Reason, "a person's yes") {
				t.Errorf("%+v", d)
			}
			expect(t, s.deploy(t, k, command(k, queued)), 409, problem.EnvironmentChanged)
		}
		s.is(t, s.approved(t, s.deploy(t, "d", command("d", ""))).ID, "succeeded")
		s.cluster.rolledOut("a", "d")
		s.healthy(t)
	})
}
