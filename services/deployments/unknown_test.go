package deployments_test

import (
	"strings"
	"testing"
	"time"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/problem"
	"github.com/einmal/einmal/pkg/server/servertest"
	"github.com/einmal/einmal/services/deployments"
)

// The cluster has begun, or has not, and the answer does not say so.
func TestAnAnswerThatIsLost(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		for name, c := range map[string]struct{ when, action, more string }{
			"after the rollout has begun":                            {"after", "reset", ""},
			"after the rollout has begun, with a status":             {"after", "status", `,"status":500`},
			"after the rollout has begun, with a proxy's 404":        {"after", "status", `,"status":404`},
			"after the rollout has begun, with a proxy's 422":        {"after", "status", `,"status":422`},
			"after the rollout has begun, with a page to log in":     {"after", "status", `,"status":302`},
			"before anything has happened, with a proxy's 410":       {"before", "status", `,"status":410`},
			"after the rollout has begun, by a hang":                 {"after", "hang", ""},
			"before anything has happened":                           {"before", "lose", ""},
			"before anything has happened, with a status":            {"before", "status", `,"status":503`},
			"before anything has happened, and the request is late":  {"before", "delay", `,"delay_ms":1500`},
			"before anything has happened, and the cluster is busy":  {"before", "status", `,"status":429`},
			"before anything has happened, and the token is unknown": {"before", "status", `,"status":401`},
		} {
			for _, keys := range []string{"honours", "ignores"} {
				t.Run(name+", at a cluster that "+keys+" keys", func(t *testing.T) {
					t.Parallel() // each waits most of its time
					s := start(t, kind)
					if keys == "ignores" {
						s.cluster.ignoresKeys()
					}
					s.cluster.arm("send", c.when, c.action, c.more)
					d := s.accepted(t, s.deploy(t, "k", command("a", "")))
					expect(t, s.deploy(t, "other", command("b", "")), 409, problem.EnvironmentLocked)
					s.is(t, d.ID, "succeeded")
					if again := s.deploy(t, "k", command("a", "")); again.Status != 201 || again.Outcome() != "replayed" {
						t.Errorf("%s", again)
					}
					s.succeeds(t, "other", command("b", ""))
					s.cluster.rolledOut("a", "b")
					s.healthy(t)
				})
			}
		}
	})
}

func TestWhatIsNotWhatWasAskedFor(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		for action, runs := range map[string]string{"other_digest": image("a")[:len(image("a"))-1] + "0", "half": "mixed"} {
			t.Run(action+" is unknown, keeps the lock, and asks a person", func(t *testing.T) {
				s := start(t, kind)
				s.cluster.arm("send", "after", action, "")
				d := s.accepted(t, s.deploy(t, "k", command("a", "")))
				op := s.withPerson(t, d)
				if op.State != "unknown" || op.Effect != "unknown" || op.NextAction != "ask_human" {
					t.Errorf("%+v", op)
				}
				d = s.is(t, d.ID, "unknown")
				if d.ReportedArtifact != runs || d.Reason == "" {
					t.Errorf("%+v", d)
				}
				env := s.prod(t)
				if env.Lock == nil || env.Lock.DeploymentID != d.ID || env.live() != "" {
					t.Errorf("%+v", env)
				}
				waiting := s.accepted(t, s.deploy(t, "next", command("b", queued)))

				// Nobody's word makes live what does not run.
				yes := s.operator().Send(t, "POST", "/v1/reviews/"+op.ReviewID+"/resolution", `{"state":"succeeded","evidence":"it looks right"}`, key("yes"))
				if p := expect(t, yes, 422, problem.ValidationFailed); len(p.Errors) != 1 || p.Errors[0].Pointer != "/state" || !strings.Contains(p.Errors[0].Detail, runs) {
					t.Errorf("%s", yes)
				}
				resolution := `{"state":"failed","evidence":"seen on the dashboard"}`
				a := s.operator().Send(t, "POST", "/v1/reviews/"+op.ReviewID+"/resolution", resolution, key("r"))
				if a.Status != 200 {
					t.Fatalf("%s", a) // the rollout has ended under the last token that was drawn: nothing can arrive any more
				}
				if d = s.is(t, d.ID, "failed"); d.Reason == "" || d.ReportedArtifact != runs {
					t.Errorf("%+v", d)
				}
				s.is(t, waiting.ID, "succeeded")
				s.healthy(t)
			})
		}
	})
}

// A person's word frees nothing while the cluster may still begin the rollout.
func TestAPersonDecidesOnlyWhatIsClosed(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind, func(c *deployments.Config) { c.ProviderTimeout = 150 * time.Millisecond })
		s.cluster.arm("send", "before", "lose", "")
		s.cluster.Arm(`{"target":"cluster","operation":"close","when":"before","action":"hang","times":1000}`)
		d := s.accepted(t, s.deploy(t, "k", command("a", "")))
		op := s.withPerson(t, d)
		resolve := func(k, state string) servertest.Answer {
			return s.operator().Send(t, "POST", "/v1/reviews/"+op.ReviewID+"/resolution", `{"state":"`+state+`","evidence":"on the dashboard"}`, key("%s", k))
		}
		expect(t, resolve("yes", "succeeded"), 409, problem.OperationRunning)
		if a := resolve("no", "failed"); a.Status != 200 {
			t.Errorf("%s", a)
		}
		if s.prod(t).Lock == nil || s.now(t, d.ID).State != "unknown" {
			t.Errorf("the lock is free, %+v", s.now(t, d.ID))
		}
		s.cluster.Disarm() // and now the close gets through: nothing had begun
		if d = s.is(t, d.ID, "canceled"); d.Reason == "" || s.prod(t).Lock != nil {
			t.Errorf("%+v", d)
		}
		s.succeeds(t, "next", command("b", ""))
		s.cluster.rolledOut("b")
		s.healthy(t)
	})
}

func TestAReleaseThatFails(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)
		for service, code := range map[string]problem.Code{"failing": problem.RolloutFailed, "refused": problem.EffectRefused} {
			body := `{"service":"` + service + `","environment":"prod","artifact":"` + image("a") + `"}`
			a := s.deploy(t, service, body, wait)
			if p := expect(t, a, 409, code); a.Outcome() != "executed" || p.OperationID == "" || p.OperationState != "failed" || p.Effect != problem.EffectNone {
				t.Errorf("%s", a)
			}
			var op operation
			s.agent().Send(t, "GET", "/v1/operations", "", key("%s", service)).Decode(t, &op)
			if d := s.now(t, op.Resource.ID); d.State != "failed" || d.Reason == "" || d.FinishedAt == "" {
				t.Errorf("%+v", d)
			}
			if again := s.deploy(t, service, body); again.Outcome() != "replayed" || string(again.Body) != string(a.Body) {
				t.Errorf("%s", again)
			}
		}
		if env := s.prod(t); env.Lock != nil || len(env.Releases) != 0 {
			t.Errorf("%+v", env)
		}
		s.healthy(t)
	})
}
