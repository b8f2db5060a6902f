package deployments_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/problem"
	"github.com/einmal/einmal/pkg/server/servertest"
)

// long is the time of rollouts that go on while the test looks, also on a busy machine.
const long = 1500 * time.Millisecond

func TestALockedEnvironment(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := startAt(t, kind, startCluster(t, kind, long))

		t.Run("refuses another deployment for now, and says who holds it", func(t *testing.T) {
			holder := s.accepted(t, s.deploy(t, "118", command("8", "")))
			s.is(t, holder.ID, "running")
			no := s.deploy(t, "119", command("9", ""))
			p := expect(t, no, 409, problem.EnvironmentLocked)
			if p.Holder == nil || p.Holder.DeploymentID != holder.ID || p.Holder.OperationID != holder.OperationID || p.Retry != problem.RetrySameKey || no.Header.Get("Retry-After") == "" {
				t.Errorf("%s", no)
			}
			if lock := s.prod(t).Lock; lock == nil || lock.DeploymentID != holder.ID || lock.FencingToken != 1 || lock.OperationID != holder.OperationID || lock.Reason == "" {
				t.Errorf("the lock is %+v", lock)
			}
			s.is(t, holder.ID, "succeeded")
			if d := s.succeeds(t, "119", command("9", "")); d.Artifact != image("9") {
				t.Errorf("the same key later: %+v", d)
			}
		})

		t.Run("is another account's, or another environment, for nobody else", func(t *testing.T) {
			holder := s.accepted(t, s.deploy(t, "mine", command("a", "")))
			others := s.globex().Send(t, "POST", "/v1/deployments", command("b", ""), key("mine"))
			if others.Status != 202 {
				t.Errorf("globex: %s", others)
			}
			expect(t, s.globex().Send(t, "GET", "/v1/deployments/"+holder.ID, ""), 404, problem.NotFound)
			expect(t, s.globex().Send(t, "POST", "/v1/deployments/"+holder.ID+"/cancel", nothing, key("c")), 404, problem.NotFound)
			staging := `{"service":"web","environment":"staging","artifact":"` + image("c") + `"}`
			elsewhere := s.accepted(t, s.deploy(t, "elsewhere", staging))
			for _, d := range []deployment{holder, elsewhere} {
				s.is(t, d.ID, "succeeded")
			}
			await(t, "globex's is live", func() bool {
				var op operation
				s.globex().Send(t, "GET", "/v1/operations", "", key("mine")).Decode(t, &op)
				return op.State == "succeeded"
			})
		})
		s.healthy(t)
	})
}

func TestTheQueue(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		t.Run("keeps its order", func(t *testing.T) {
			s := start(t, kind)
			var all []deployment
			for _, digit := range []string{"a", "b", "c", "d"} {
				all = append(all, s.accepted(t, s.deploy(t, digit, command(digit, queued))))
			}
			if d := s.now(t, all[3].ID); d.State == "queued" && d.QueuePosition == 0 {
				t.Errorf("it waits without a place: %+v", d)
			}
			for _, d := range all {
				s.is(t, d.ID, "succeeded")
			}
			s.cluster.rolledOut("a", "b", "c", "d")
			if env := s.prod(t); env.Version != 5 || env.live() != image("d") || env.Lock != nil || len(env.Queue) != 0 {
				t.Errorf("%+v", env)
			}
			s.healthy(t)
		})

		t.Run("is shown, and can be left", func(t *testing.T) {
			s := startAt(t, kind, startCluster(t, kind, long))
			first := s.accepted(t, s.deploy(t, "a", command("a", "")))
			second := s.accepted(t, s.deploy(t, "b", command("b", queued)))
			third := s.accepted(t, s.deploy(t, "c", command("c", queued)))
			if second.QueuePosition != 1 || third.QueuePosition != 2 || second.State != "queued" {
				t.Errorf("%+v, %+v", second, third)
			}
			env := s.prod(t)
			if len(env.Queue) != 2 || env.Queue[0].DeploymentID != second.ID || env.Queue[1].DeploymentID != third.ID || env.Lock.DeploymentID != first.ID {
				t.Errorf("%+v", env)
			}
			s.healthy(t)
			a := s.about(t, second.ID, "cancel", "cancel", nothing)
			var canceled deployment
			a.Decode(t, &canceled)
			if a.Status != 200 || canceled.State != "canceled" || canceled.FencingToken != 0 || canceled.FinishedAt == "" || canceled.Reason == "" {
				t.Errorf("%s", a)
			}
			if again := s.about(t, second.ID, "cancel", "cancel", nothing); again.Outcome() != "replayed" {
				t.Errorf("%s", again)
			}
			if d := s.now(t, third.ID); d.QueuePosition != 1 {
				t.Errorf("the next is %+v", d)
			}
			s.is(t, third.ID, "succeeded")
			s.cluster.rolledOut("a", "c")
			s.healthy(t)
		})
	})
}

func TestAnExpectedVersion(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)
		s.succeeds(t, "a", command("a", `,"expected_version":1`))

		t.Run("that is not the environment's is refused for good", func(t *testing.T) {
			no := s.deploy(t, "b", command("b", `,"expected_version":1`))
			expect(t, no, 409, problem.EnvironmentChanged)
			if again := s.deploy(t, "b", command("b", `,"expected_version":1`)); again.Outcome() != "replayed" || string(again.Body) != string(no.Body) {
				t.Errorf("%s", again)
			}
			if env := s.prod(t); env.Lock != nil || env.Version != 2 {
				t.Errorf("%+v", env)
			}
		})

		t.Run("is compared when the plan's turn comes, and the next has its turn then", func(t *testing.T) {
			holder := s.accepted(t, s.deploy(t, "c", command("c", `,"expected_version":2`)))
			stale := s.accepted(t, s.deploy(t, "d", command("d", `,"expected_version":2`+queued)))
			planned := s.accepted(t, s.deploy(t, "e", command("e", `,"expected_version":3`+queued)))
			s.is(t, holder.ID, "succeeded")
			if d := s.is(t, stale.ID, "failed"); d.Reason == "" || d.FencingToken != 0 {
				t.Errorf("%+v", d)
			}
			expect(t, s.deploy(t, "d", command("d", `,"expected_version":2`+queued)), 409, problem.EnvironmentChanged)
			s.is(t, planned.ID, "succeeded")
			s.cluster.rolledOut("a", "c", "e")
		})

		t.Run("does not change by what was never sent", func(t *testing.T) {
			before := s.prod(t).Version
			expect(t, s.deploy(t, "f", `{"service":"refused","environment":"prod","artifact":"`+image("f")+`"}`, wait), 409, problem.EffectRefused)
			if got := s.prod(t).Version; got != before+1 { // it was sent, and refused there
				t.Errorf("version %d after %d", got, before)
			}
		})
		s.healthy(t)
	})
}

func TestTwoReplicasHaveOneLock(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		one := startAt(t, kind, startCluster(t, kind, 20*time.Millisecond))
		other := startOn(t, one.db, one.cluster)
		for round := range 5 {
			answers := make([]servertest.Answer, 8)
			var all sync.WaitGroup
			for i := range answers {
				all.Go(func() {
					at := []running{one, other}[i%2]
					answers[i] = at.deploy(t, fmt.Sprintf("%d-%d", round, i), command(fmt.Sprint(i), ""))
				})
			}
			all.Wait()
			won := 0
			for _, a := range answers {
				switch {
				case a.Status == 202:
					won++
				case a.Status != 409:
					t.Errorf("%s", a)
				}
			}
			if won == 0 {
				t.Error("nobody has got the lock")
			}
			await(t, "the environment is free", func() bool { return one.prod(t).Lock == nil })
		}
		one.healthy(t)
	})
}
