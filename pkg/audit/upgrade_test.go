package audit_test

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/einmal/einmal/migrations"
	"github.com/einmal/einmal/pkg/audit"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
)

// testdata/sealed_0010.jsonl is what the release before segments has exported: 8 leaves in three batches, and 5 events that were marked.
const sealedBefore, markedBefore = 8, 5

// trustBefore puts what was outside the database of that time into a directory.
func trustBefore(t *testing.T, dir string) {
	t.Helper()
	copyFile(t, "testdata/sealed_0010.pub", filepath.Join(dir, "audit.pub"))
	copyFile(t, "testdata/sealed_0010.checkpoint", filepath.Join(dir, "tickets.checkpoint"))
}

func TestAFileOfAnOlderRelease(t *testing.T) {
	s := sealed{t: t, dir: t.TempDir()}
	trustBefore(t, s.dir)
	file, err := os.Open("testdata/sealed_0010.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	report, err := audit.Verify(audit.ReadFile(file), s.trust())
	if err != nil || len(report.Findings) > 0 || report.Leaves != sealedBefore || report.Pending != markedBefore {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestADatabaseOfAnOlderRelease(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := newSealed(t, kind)
		shared := versions(t, s.db)
		const before = 10
		if _, err := shared.DownTo(t.Context(), before); err != nil {
			t.Fatal(err)
		}
		s.fill(t, "testdata/sealed_0010.jsonl")
		trustBefore(t, s.dir)
		if err := migrations.Up(t.Context(), s.db, dbtest.Service); err != nil {
			t.Fatal(err)
		}
		s.whole(sealedBefore, markedBefore)

		if _, err := s.files().CreateKey(time.Now()); err != nil { // whose it was is not here
			t.Fatal(err)
		}
		receipt, err := s.sealer.Receipt(t.Context(), "acme", "op_1", []byte(`{"id":"op_1","state":"succeeded","agent_run":"run-1"}`))
		if err != nil || len(receipt.Events) != 8 {
			t.Fatalf("%+v, %v", receipt, err)
		}
		if _, err := receipt.Verify(s.trust().Keys); err != nil {
			t.Error(err)
		}
		s.whole(sealedBefore+markedBefore, 0)
		s.record(20)
		s.seal()
		s.record(3)
		s.whole(sealedBefore+markedBefore+20, 3)

		t.Run("is that again, when it is taken back there", func(t *testing.T) {
			if _, err := shared.DownTo(t.Context(), before); err != nil {
				t.Fatal(err)
			}
			if err := migrations.Up(t.Context(), s.db, dbtest.Service); err != nil {
				t.Fatal(err)
			}
			s.whole(sealedBefore+markedBefore+20, 3)
			s.seal()
			s.whole(sealedBefore+markedBefore+23, 0)
		})
	})
}

// versions are those of the shared tables.
func versions(t *testing.T, db *database.DB) *goose.Provider {
	t.Helper()
	dialect := map[database.Kind]goose.Dialect{database.Postgres: goose.DialectPostgres, database.SQLite: goose.DialectSQLite3}[db.Kind()]
	provider, err := goose.NewProvider(dialect, db.SQL(), os.DirFS(path.Join("../../migrations", string(db.Kind()), "shared")),
		goose.WithTableName("schema_shared"), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		t.Fatal(err)
	}
	return provider
}

// fill puts an exported log into the tables as they were.
func (s sealed) fill(t *testing.T, exported string) {
	t.Helper()
	file, err := os.Open(exported)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	exec := func(statement string, args ...any) {
		t.Helper()
		if err := s.db.Read(context.Background()).Exec(statement, args...).Error; err != nil {
			t.Fatal(err)
		}
	}
	event := func(e *audit.Event) {
		t.Helper()
		exec(`INSERT INTO events (id, account_id, type, at, principal, agent_run, request_id, operation_id, attempt_id, key_hash, fingerprint, route, effect_key,
			reference, from_state, to_state) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, e.ID, e.Account, e.Type, time.Time(e.At), e.Principal,
			e.AgentRun, e.RequestID, e.OperationID, e.AttemptID, e.KeyHash, e.Fingerprint, e.Route, e.EffectKey, e.Reference, e.From, e.To)
	}
	for e, err := range audit.ReadFile(file) {
		switch {
		case err != nil:
			t.Fatal(err)
		case e.Log != nil:
			exec("UPDATE installation SET namespace = ?", strings.TrimPrefix(e.Log.Origin, "einmal/tickets/"))
			exec("UPDATE audit_tree SET size = ?, checkpoints = ?", e.Log.Size, e.Log.Checkpoints)
		case e.Checkpoint != nil:
			exec("INSERT INTO audit_checkpoints (number, note) VALUES (?, ?)", e.Checkpoint.Number, e.Checkpoint.Note)
		case e.Leaf != nil:
			event(e.Leaf.Event)
			exec("INSERT INTO leaves (account_id, event_id, leaf_index, hashes) VALUES (?, ?, ?, ?)", e.Leaf.Account, e.Leaf.EventID, e.Leaf.Index, e.Leaf.Hashes)
		case e.Loose != nil:
			event(e.Loose.Event)
			exec("INSERT INTO unsealed (account_id, event_id) VALUES (?, ?)", e.Loose.Account, e.Loose.EventID)
		}
	}
}
