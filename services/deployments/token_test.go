package deployments_test

import (
	"testing"
	"time"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/services/deployments"
)

func TestAToken(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		t.Run("that the cluster does not take any more is drawn anew, above its floor", func(t *testing.T) {
			s := start(t, kind)
			s.succeeds(t, "a", command("a", ""))
			s.succeeds(t, "b", command("b", ""))
			// The database is restored from a backup, which has forgotten which tokens were drawn.
			if err := s.db.Read(t.Context()).Exec("UPDATE environments SET token = 0, floor = 0 WHERE name = 'prod'").Error; err != nil {
				t.Fatal(err)
			}
			d := s.succeeds(t, "c", command("c", ""))
			op := s.operation(t, d.OperationID)
			if len(op.Attempts) != 2 || op.Attempts[0].Outcome != "not_sent" || op.Attempts[0].Error != "below floor 4" || d.FencingToken < 4 {
				t.Errorf("%+v, %+v", op.Attempts, d)
			}
			s.cluster.rolledOut("a", "b", "c")
			s.healthy(t)
		})

		t.Run("of a sender that comes too late begins nothing", func(t *testing.T) {
			for _, keys := range []string{"honours", "ignores"} {
				s := start(t, kind, func(c *deployments.Config) {
					c.ProviderTimeout, c.EffectLease = 500*time.Millisecond, time.Second
				})
				if keys == "ignores" {
					s.cluster.ignoresKeys()
				}
				s.cluster.arm("send", "before", "delay", `,"delay_ms":4000`)
				d := s.succeeds(t, "a", command("a", ""))
				if d.FencingToken < 2 {
					t.Errorf("%+v", d)
				}
				s.succeeds(t, "b", command("b", ""))
				await(t, "the late request is decided", func() bool {
					return len(s.cluster.Calls("cluster")) > 0
				})
				s.cluster.rolledOut("a", "b")
				s.healthy(t)
			}
		})
	})
}

func TestARestart(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		c := startCluster(t, kind, long)
		s := startAt(t, kind, c)
		d := s.accepted(t, s.deploy(t, "a", command("a", "")))
		await(t, "the rollout goes on", func() bool { return len(c.ledger("rollout")) == 1 })
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
		again := startOn(t, s.db, c)
		again.is(t, d.ID, "succeeded")
		c.rolledOut("a")
		again.healthy(t)
	})
}
