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

// Two cancelations that know nothing of each other are two operations, and only one of them may be told that it breaks the rollout off.
func TestCancelationsAtOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := startAt(t, kind, startCluster(t, kind, patience))
		d := s.accepted(t, s.deploy(t, "k", command("a", "")))
		s.becomes(t, d.ID, "goes on", func(d deployment) bool { return d.State == "running" && len(s.cluster.ledger("rollout")) == 1 })
		s.cluster.arm("stop", "before", "delay", `,"delay_ms":1500`) // all of them come while the first is on its way

		answers := make([]servertest.Answer, 8)
		var all sync.WaitGroup
		for i := range answers {
			all.Go(func() { answers[i] = s.about(t, d.ID, "cancel", fmt.Sprintf("c%d", i), nothing) })
		}
		all.Wait()
		var stops []operation
		for _, a := range answers {
			if a.Status != 202 {
				expect(t, a, 409, problem.OperationRunning)
				continue
			}
			var op operation
			a.Decode(t, &op)
			stops = append(stops, op)
		}
		if len(stops) != 1 {
			t.Errorf("%d cancelations were accepted", len(stops))
		}
		s.is(t, d.ID, "canceled")
		for _, op := range stops {
			await(t, "the cancelation has ended", func() bool { op = s.operation(t, op.ID); return op.State == "succeeded" })
		}
		s.healthy(t)
	})
}

// A rollback that is asked for while its release is about to go live is about that as it is live. On SQLite one transaction follows the
// other, so that nothing waits.
func TestARollbackWaitsForWhatIsSettled(t *testing.T) {
	s := start(t, database.Postgres)
	s.succeeds(t, "a", command("a", ""))
	second := s.succeeds(t, "b", command("b", ""))
	var replaced string // as it was before the second was settled, and as settling it writes it
	err := s.db.InTx(t.Context(), func(tx database.Tx) error {
		if err := tx.Raw("SELECT replaced FROM deployments WHERE id = ?", second.ID).Scan(&replaced).Error; err != nil {
			return err
		}
		return tx.Exec("UPDATE deployments SET replaced = '' WHERE id = ?", second.ID).Error
	})
	if err != nil {
		t.Fatal(err)
	}

	asked := make(chan servertest.Answer, 1)
	err = s.db.InTx(t.Context(), func(tx database.Tx) error {
		if err := tx.Exec("UPDATE environments SET version = version WHERE account_id = 'acme' AND name = 'prod'").Error; err != nil {
			return err
		}
		go func() { asked <- s.about(t, second.ID, "rollback", "r", nothing) }()
		await(t, "the rollback waits", func() bool {
			waiting := 0
			err := s.db.Read(t.Context()).Raw("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'").Scan(&waiting).Error
			return err == nil && waiting > 0
		})
		return tx.Exec("UPDATE deployments SET replaced = ? WHERE id = ?", replaced, second.ID).Error
	})
	if err != nil {
		t.Fatal(err)
	}
	if back := s.approved(t, <-asked); back.Artifact != image("a") {
		t.Errorf("%+v", back)
	}
	await(t, "it is live", func() bool { return s.prod(t).live() == image("a") })
	s.healthy(t)
}

// Whoever is next may be withdrawn at the moment in which the lock is handed on: then it is handed to the one after. On SQLite one
// transaction follows the other.
func TestTheNextIsWithdrawnMeanwhile(t *testing.T) {
	s := start(t, database.Postgres)
	s.cluster.arm("send", "before", "status", `,"status":429`)
	holder := s.accepted(t, s.deploy(t, "a", command("a", queued)))
	next := s.accepted(t, s.deploy(t, "b", command("b", queued)))
	last := s.accepted(t, s.deploy(t, "c", command("c", queued)))
	await(t, "the holder is turned away, and put off for long", func() bool {
		put := int64(0)
		err := s.db.InTx(t.Context(), func(tx database.Tx) error {
			later := tx.Exec("UPDATE effects SET next_at = ? WHERE operation_id = ? AND state = 'queued' AND attempts > 0", tx.Now.Add(time.Hour), holder.OperationID)
			put = later.RowsAffected
			return later.Error
		})
		return err == nil && put == 1
	})

	canceled := make(chan servertest.Answer, 2)
	err := s.db.InTx(t.Context(), func(tx database.Tx) error {
		waits := func(n int) {
			await(t, "a cancelation waits", func() bool {
				waiting := 0
				err := s.db.Read(t.Context()).Raw("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'").Scan(&waiting).Error
				return err == nil && waiting >= n
			})
		}
		if err := tx.Exec("UPDATE operations SET updated_at = updated_at WHERE account_id = 'acme' AND id = ?", next.OperationID).Error; err != nil {
			return err
		}
		go func() { canceled <- s.about(t, next.ID, "cancel", "next", nothing) }()
		waits(1) // it has withdrawn the effect, and is about to tell its operation
		go func() { canceled <- s.about(t, holder.ID, "cancel", "holder", nothing) }()
		waits(2) // it hands the lock on
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if a := <-canceled; a.Status != 200 {
			t.Fatalf("%s", a)
		}
	}
	s.is(t, holder.ID, "canceled")
	s.is(t, next.ID, "canceled")
	s.is(t, last.ID, "succeeded")
	s.healthy(t)
}
