package deployments_test

import (
	"testing"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/problem"
)

func TestADeployment(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)

		t.Run("goes live once, and is told of under its key", func(t *testing.T) {
			a := s.deploy(t, "one", command("a", ""))
			d := s.accepted(t, a)
			if d.Kind != "deploy" || d.Artifact != image("a") || d.Service != "web" || d.Environment != "prod" {
				t.Errorf("%+v", d)
			}
			d = s.is(t, d.ID, "succeeded")
			if d.FencingToken != 1 || d.ReportedArtifact != image("a") || d.StartedAt == "" || d.FinishedAt == "" || d.Reason != "" {
				t.Errorf("%+v", d)
			}
			again := s.deploy(t, "one", command("a", ""))
			if again.Status != 201 || again.Outcome() != "replayed" || again.Header.Get("Location") != "/v1/deployments/"+d.ID {
				t.Errorf("again %s", again)
			}
			env := s.prod(t)
			if env.Version != 2 || env.live() != image("a") || env.Lock != nil || len(env.Queue) != 0 {
				t.Errorf("%+v", env)
			}
			s.cluster.rolledOut("a")
		})

		t.Run("with a tag beside its digest is the same command", func(t *testing.T) {
			tagged := `{"service":"web","environment":"prod","artifact":"registry.example/app:v1@sha256:` + image("a")[len(image("a"))-64:] + `"}`
			if again := s.deploy(t, "one", tagged); again.Outcome() != "replayed" {
				t.Errorf("%s", again)
			}
			expect(t, s.deploy(t, "one", command("b", "")), 422, problem.IdempotencyKeyReused)
		})

		t.Run("waits for its end with Prefer", func(t *testing.T) {
			if d := s.succeeds(t, "two", command("b", "")); d.State != "succeeded" || d.FencingToken < 2 {
				t.Errorf("%+v", d)
			}
		})
		s.cluster.rolledOut("a", "b")
		s.healthy(t)
	})
}
