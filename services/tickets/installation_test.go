package tickets_test

import (
	"testing"
	"time"

	"github.com/einmal/einmal/migrations"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/outbox"
	"github.com/einmal/einmal/services/tickets"
)

// Two installations share a desk, an account's name and a key.
func TestTwoInstallationsAtOneDesk(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		t.Run("each have a ticket of their own there", func(t *testing.T) {
			one, d := mirroring(t, kind, "key", unnamed)
			db := dbtest.Open(t, kind)
			// Databases of tests may be copies of one, name and all: this one has gone its own way.
			if _, err := db.SQL().ExecContext(t.Context(), "UPDATE installation SET namespace = 'other'"); err != nil {
				t.Fatal(err)
			}
			other := startOn(t, db, before(d), unnamed)
			_, first := one.mirrored(t, "k", "ops")
			_, second := other.mirrored(t, "k", "dev")
			a, b := one.ends(t, first, "succeeded"), other.ends(t, second, "succeeded")
			if ledger := d.ledger(); len(ledger) != 2 || a.EffectKey == b.EffectKey || a.Reference == b.Reference {
				t.Errorf("%+v, %+v, %+v", a, b, ledger)
			}
		})

		t.Run("under one name too, and a person hears that one's ticket is not there", func(t *testing.T) {
			shared := func(c *tickets.Config) { c.Namespace = "shared" }
			one, d := mirroring(t, kind, "key", shared)
			other := start(t, kind, before(d), shared)
			_, first := one.mirrored(t, "k", "ops")
			there := one.ends(t, first, "succeeded").Reference
			_, second := other.mirrored(t, "k", "dev")
			op := other.becomes(t, second, "is with a person", func(op operation) bool { return op.ReviewID != "" })
			for _, k := range []string{"r1", "r2"} {
				other.reconcile(t, second, k)
			}
			op = other.operation(t, second)
			if op.State != "unknown" || op.NextAction != "ask_human" || op.Reference != "" || len(op.Attempts) != 1 || op.Attempts[0].Outcome != "ambiguous" {
				t.Errorf("%+v", op)
			}
			var open struct{ Items []review }
			other.agent().Send(t, "GET", "/v1/reviews?state=open", "").Decode(t, &open)
			if len(open.Items) != 1 || open.Items[0].Kind != "contradiction" || open.Items[0].ID != op.ReviewID {
				t.Fatalf("open reviews: %+v", open.Items)
			}
			path := "/v1/reviews/" + op.ReviewID + "/resolution"
			undecided := other.As("demo-operator").Send(t, "POST", path, `{"evidence":"it is `+there+`, of the others"}`, key("d"))
			if undecided.Status != 422 {
				t.Errorf("resolved without a word about how it ended: %s", undecided)
			}
			decided := other.As("demo-operator").Send(t, "POST", path, `{"state":"failed","evidence":"it is `+there+`, of the others"}`, key("d"))
			if op = other.operation(t, second); decided.Status != 200 || op.State != "failed" {
				t.Errorf("%s, %+v", decided, op)
			}
			d.has(1)
			other.healthy(t)
		})
	})
}

// The name is the database's: whoever serves from it sends the same keys.
func TestEveryReplicaSendsTheSameKeys(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		url := dbtest.URL(t, kind)
		d := startDesk(t, kind, "key")
		var keys []string
		for _, k := range []string{"one", "two"} {
			db := dbtest.Connect(t, url, database.Options{})
			if err := migrations.Up(t.Context(), db, tickets.Name); err != nil {
				t.Fatal(err)
			}
			s := startOn(t, db, before(d), unnamed)
			_, id := s.mirrored(t, k, "ops")
			s.ends(t, id, "succeeded")
			var namespace string
			if err := s.db.Read(t.Context()).Raw("SELECT namespace FROM installation").Scan(&namespace).Error; err != nil {
				t.Fatal(err)
			}
			var key string
			if err := s.db.Read(t.Context()).Raw("SELECT idempotency_key FROM operations WHERE id = ?", id).Scan(&key).Error; err != nil {
				t.Fatal(err)
			}
			op := s.operation(t, id)
			if want := outbox.Key(namespace, "tickets", "acme", idempotency.Key(key), "mirror"); op.EffectKey != want {
				t.Errorf("sent under %s, want %s", op.EffectKey, want)
			}
			keys = append(keys, namespace)
		}
		if keys[0] != keys[1] || len(keys[0]) < 32 {
			t.Errorf("%q", keys)
		}
	})
}

// before is in front of a desk that is there.
func before(d desk) func(*tickets.Config) {
	return func(c *tickets.Config) {
		c.ProviderURL, c.DeskAbility, c.ReconcileEvery = d.URL, "key", 20*time.Millisecond
	}
}

// unnamed is told no name: it takes its database's.
func unnamed(c *tickets.Config) { c.Namespace = "" }
