package tickets_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/migrations"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/database/pgserver"
	"github.com/einmal/einmal/pkg/problem"
	"github.com/einmal/einmal/pkg/server/servertest"
	"github.com/einmal/einmal/services/tickets"
)

// ready holds /readyz to an answer: no failing checks mean 200. /healthz says in any case that the process lives.
func (r running) ready(t *testing.T, failing ...string) {
	t.Helper()
	a := r.As("").Send(t, "GET", "/readyz", "")
	var got struct {
		Status  string
		Failing []string
	}
	a.Decode(t, &got)
	wantStatus, wantText := 200, "ready"
	if failing != nil {
		wantStatus, wantText = 503, "not ready"
	}
	if diff := cmp.Diff(failing, got.Failing); a.Status != wantStatus || got.Status != wantText || diff != "" {
		t.Errorf("readyz: %s (-want +got)\n%s", a, diff)
	}
	if a := r.As("").Send(t, "GET", "/healthz", ""); a.Status != 200 {
		t.Errorf("healthz: %s", a)
	}
}

func TestAServiceIsReadyWhenItsTablesAre(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)
		s.ready(t)
		for _, table := range []string{"schema_tickets", "schema_shared"} {
			if err := s.db.Read(t.Context()).Exec("DELETE FROM " + table + " WHERE version_id = (SELECT max(version_id) FROM " + table + ")").Error; err != nil {
				t.Fatal(err)
			}
			s.ready(t, "migrations")
		}
	})

	t.Run("and not when there are none", func(t *testing.T) {
		db, err := database.Open(t.Context(), "sqlite:"+t.TempDir()+"/empty.db", database.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		s := startOn(t, db)
		s.ready(t, "migrations")
		wantNoStore(t, s, "k")
		if err := migrations.Up(t.Context(), db, tickets.Name); err != nil {
			t.Fatal(err)
		}
		s.ready(t)
		if a := create(t, s.agent(), key("k"), `{"project":"ops","title":"t"}`); a.Outcome() != "executed" {
			t.Errorf("the same key once it is migrated: %s", a)
		}
	})

	t.Run("and whoever calls before gets 503, as of a column that is not there yet", func(t *testing.T) {
		dbtest.Each(t, func(t *testing.T, kind database.Kind) {
			s := start(t, kind)
			for _, change := range []string{"ALTER TABLE tickets RENAME COLUMN title TO titled", "ALTER TABLE tickets RENAME TO ticketed", "ALTER TABLE operations RENAME TO operated"} {
				if err := s.db.Read(t.Context()).Exec(change).Error; err != nil {
					t.Fatal(err)
				}
				wantNoStore(t, s, change)
			}
		})
	})

	t.Run("and not when a newer release has more", func(t *testing.T) {
		s := start(t, database.SQLite)
		if err := s.db.Read(t.Context()).Exec("INSERT INTO schema_tickets (version_id, is_applied) VALUES (9999, 1)").Error; err != nil {
			t.Fatal(err)
		}
		s.ready(t) // a release runs before and after the migrations of its successor
	})
}

// wantNoStore holds a write and a read to 503, and to nothing done.
func wantNoStore(t *testing.T, s running, name string) {
	t.Helper()
	for _, a := range []servertest.Answer{create(t, s.agent(), key("k"), `{"project":"ops","title":"t"}`), s.agent().Send(t, "GET", "/v1/tickets", "")} {
		p := expect(t, name, a, 503, problem.StoreUnavailable)
		if p.Effect != problem.EffectNone || p.Retry != problem.RetrySameKey || !strings.Contains(p.Detail, "migrate") {
			t.Errorf("%s: %s", name, a)
		}
	}
}

// The database server goes away and comes back, under a service that stays.
func TestADatabaseThatIsAway(t *testing.T) {
	pg := dbtest.Server(t, pgserver.Options{})
	db := dbtest.Connect(t, pg.URL("postgres"), database.Options{})
	if err := migrations.Up(t.Context(), db, tickets.Name); err != nil {
		t.Fatal(err)
	}
	s := startOn(t, db)
	s.ready(t)
	const body = `{"project":"ops","title":"t"}`
	before := create(t, s.agent(), key("before"), body)

	if err := pg.Halt(); err != nil {
		t.Fatal(err)
	}
	s.ready(t, "database", "migrations")
	for k, effect := range map[string]problem.Effect{"before": problem.EffectUnknown, "during": problem.EffectNone} { // of one it knows
		a := create(t, s.agent(), key("%s", k), body)
		p := expect(t, k, a, 503, problem.StoreUnavailable)
		if p.Effect != effect || p.Retry != problem.RetrySameKey || a.Header.Get("Retry-After") == "" {
			t.Errorf("%s: %s", k, a)
		}
	}
	expect(t, "an alert", s.notify(t, group(fires("During"), fires("DuringToo"))), 503, problem.StoreUnavailable)
	for _, path := range []string{"/v1/tickets", "/v1/tickets/tkt_1", "/v1/operations", "/v1/operations/op_1"} {
		p := expect(t, path, s.agent().Send(t, "GET", path, ""), 503, problem.StoreUnavailable)
		if p.Effect != problem.EffectNone {
			t.Errorf("%s: %+v", path, p)
		}
	}

	if err := pg.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.ready(t)
	if a := create(t, s.agent(), key("before"), body); a.Outcome() != "replayed" || string(a.Body) != string(before.Body) {
		t.Errorf("before: %s", a)
	}
	if a := create(t, s.agent(), key("during"), body); a.Outcome() != "executed" {
		t.Errorf("during: %s", a)
	}
	s.notified(t, "an alert", group(fires("During"), fires("DuringToo")), receipt{Alerts: 2, Created: 2})
	s.healthy(t)
}
