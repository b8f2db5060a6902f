package deployments_test

import (
	"testing"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/outbox"
)

// setBack makes of the database what an operator makes of one that was set back.
func (r running) setBack(t *testing.T) {
	t.Helper()
	record := func(database.Tx, ...idempotency.Event) error { return nil } // who writes them down is not of this test
	await(t, "the service, which works on, leaves everything alone for a moment", func() bool {
		return r.db.InTx(t.Context(), func(tx database.Tx) error { _, err := outbox.DoubtAll(tx, record); return err }) == nil
	})
}

// A deployment that waits for a yes in a database that was set back may have had it: its cluster is asked, while somebody else holds the
// environment and another waits for it.
func TestAQuestionInADatabaseThatWasSetBack(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := startAt(t, kind, startCluster(t, kind, patience))
		d := s.accepted(t, s.deploy(t, "a", toProduction("a", "")))
		holder := s.approved(t, s.deploy(t, "holds", toProduction("c", "")))
		s.becomes(t, holder.ID, "goes on", func(d deployment) bool { return d.State == "running" && len(s.cluster.ledger("rollout")) == 1 })
		s.cluster.arm("close", "before", "lose", "") // so that it is unknown for a while
		s.setBack(t)
		s.healthy(t)
		s.is(t, d.ID, "canceled")
		if a := s.approval(t, d); a.State != "stale" {
			t.Errorf("%+v", a)
		}
		s.healthy(t)
		s.about(t, holder.ID, "cancel", "c", nothing)
		s.is(t, holder.ID, "canceled")
		s.healthy(t)
	})
}
