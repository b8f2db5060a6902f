package idemhttp_test

import (
	"testing"
	"time"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/problem"
)

// RB-027: without the store nothing runs, and everybody is told so.
func TestAStoreThatIsAway(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		url := dbtest.URL(t, kind)
		s := startOn(t, dbtest.Connect(t, url, database.Options{}), idempotency.Options{})
		if a := s.post(t, key("before"), thing); a.Status != 201 {
			t.Fatal(a)
		}
		s.db.SQL().Close() // the service can't tell that from a database that is gone

		// This process knows that "before" was done, and must not say that nothing was.
		for k, effect := range map[string]problem.Effect{"before": problem.EffectUnknown, "during": problem.EffectNone} {
			a := s.post(t, key(k), thing)
			p := expect(t, k, a, 503, problem.StoreUnavailable)
			if p.Effect != effect || p.Retry != problem.RetrySameKey || a.Header.Get("Retry-After") != "1" || a.Outcome() != "" {
				t.Errorf("%s: %s %v", k, a, a.Header)
			}
		}
		expect(t, "by key", s.get(t, "/v1/operations", key("before")), 503, problem.StoreUnavailable)
		expect(t, "by id", s.get(t, "/v1/operations/op_1"), 503, problem.StoreUnavailable)
		expect(t, "list", s.get(t, "/v1/operations"), 503, problem.StoreUnavailable)

		back := startOn(t, dbtest.Connect(t, url, database.Options{}), idempotency.Options{})
		if a := back.post(t, key("during"), thing); a.Outcome() != "executed" {
			t.Errorf("when it is back: %s", a)
		}
		if a := back.post(t, key("before"), thing); a.Outcome() != "replayed" {
			t.Errorf("when it is back: %s", a)
		}
	})
}

// Somebody holds a lock that the work needs, for longer than it waits.
func TestAStoreThatIsBusy(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		url := dbtest.URL(t, kind)
		s := startOn(t, dbtest.Connect(t, url, database.Options{LockTimeout: 50 * time.Millisecond}), idempotency.Options{})
		holder := dbtest.Connect(t, url, database.Options{})
		if err := holder.InTx(t.Context(), func(tx database.Tx) error {
			if kind == database.Postgres { // on SQLite, who writes has it all
				if err := tx.Exec("LOCK TABLE things IN EXCLUSIVE MODE").Error; err != nil {
					return err
				}
			}
			p := expect(t, "busy", s.post(t, key("k"), thing), 503, problem.StoreUnavailable)
			if p.Effect != problem.EffectNone || p.Retry != problem.RetrySameKey || p.RetryAfterSeconds != 1 {
				t.Errorf("%+v", p)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		s.keepsNothing(t)
		if a := s.post(t, key("k"), thing); a.Outcome() != "executed" {
			t.Errorf("when it is free: %s", a)
		}
	})
}

// A newer release has stored the key under a version that this one can't compare: that is no conflict.
func TestAFingerprintOfAnotherVersion(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)
		s.post(t, key("k"), thing)
		if err := s.db.Read(t.Context()).Exec("UPDATE operations SET fingerprint = 'v2:00'").Error; err != nil {
			t.Fatal(err)
		}
		for _, body := range []string{thing, `{"name":"b"}`} {
			a := s.post(t, key("k"), body)
			p := expect(t, body, a, 503, problem.FingerprintVersionUnknown)
			if p.Retry != problem.RetrySameKey || a.Header.Get("Retry-After") == "" {
				t.Errorf("%s", a)
			}
		}
		if n := s.count(t, "things"); n != 1 {
			t.Errorf("%d things", n)
		}
	})
}
