// Package dbtest gives tests real databases: a fresh, migrated SQLite file or PostgreSQL database for each.
//
// PostgreSQL is a private server that the test binary starts when it first needs one and stops at its end (Main). Without its
// programs, a server named by EINMAL_TEST_POSTGRES (a URL whose role may create databases) is used. Without either, PostgreSQL's
// tests are skipped with a line that says so, and fail where CI is set.
package dbtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/einmal/einmal/migrations"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/pgserver"
)

// Service is whose tables the databases have, beside the shared ones.
const Service = "tickets"

// Kinds are the databases that everything is tested on.
var Kinds = []database.Kind{database.SQLite, database.Postgres}

// Main runs the tests of a package and stops the server that they may have started: func TestMain(m *testing.M) { dbtest.Main(m) }.
func Main(m *testing.M) { os.Exit(Run(m)) }

// Run is Main for a package that has something of its own to clear away: it returns the exit status.
func Run(m *testing.M) int {
	code := m.Run()
	if shared.server != nil {
		if err := shared.server.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop PostgreSQL:", err)
			code = max(code, 1)
		}
	}
	return code
}

// Each runs test as one subtest for each kind of database.
func Each(t *testing.T, test func(t *testing.T, kind database.Kind)) {
	for _, kind := range Kinds {
		t.Run(string(kind), func(t *testing.T) { test(t, kind) })
	}
}

// Open opens a fresh, migrated database that vanishes with the test.
func Open(t testing.TB, kind database.Kind) *database.DB {
	return OpenWith(t, kind, database.Options{})
}

// OpenWith is Open with settings.
func OpenWith(t testing.TB, kind database.Kind, options database.Options) *database.DB {
	t.Helper()
	return Connect(t, URL(t, kind), options)
}

// Connect opens a further pool on a database that URL has made: another replica.
func Connect(t testing.TB, url string, options database.Options) *database.DB {
	t.Helper()
	db, err := database.Open(t.Context(), url, options)
	if err != nil {
		t.Fatalf("open test database: %v", err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// URL makes a fresh, migrated database and returns its URL.
func URL(t testing.TB, kind database.Kind) string {
	t.Helper()
	if kind == database.SQLite {
		path := filepath.Join(t.TempDir(), "test.db")
		template, err := migratedFile()
		if err == nil {
			err = os.WriteFile(path, template, 0o600)
		}
		if err != nil {
			t.Fatalf("make test database: %v", err)
		}
		return "sqlite:" + path
	}
	shared.once.Do(shared.start)
	started(t, shared.err)
	name := fmt.Sprintf("test_%d_%d", os.Getpid(), shared.count.Add(1))
	if err := shared.server.CreateDatabase(t.Context(), name, shared.template); err != nil {
		t.Fatalf("create test database: %v", err)
	}
	t.Cleanup(func() {
		if err := shared.server.DropDatabase(context.Background(), name); err != nil {
			t.Errorf("drop test database: %v", err)
		}
	})
	return shared.server.URL(name)
}

// Server starts a PostgreSQL server that a test has for itself, to stop it or to cut it off.
func Server(t testing.TB, options pgserver.Options) *pgserver.Server {
	t.Helper()
	server, err := pgserver.Start(t.Context(), options)
	started(t, err)
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Errorf("stop PostgreSQL: %v", err)
		}
	})
	return server
}

// started ends the test unless PostgreSQL has started: one that is not there must not be overlooked, and never in CI.
func started(t testing.TB, err error) {
	t.Helper()
	switch {
	case errors.Is(err, pgserver.ErrNoBinaries) && os.Getenv("CI") == "":
		t.Skipf("NOT TESTED ON POSTGRESQL: %v", err)
	case err != nil:
		t.Fatalf("start PostgreSQL: %v", err)
	}
}

// postgres is the one server of a test binary, with a migrated database to copy.
type postgres struct {
	once     sync.Once
	server   *pgserver.Server
	template string
	count    atomic.Int64
	err      error
}

var shared postgres

func (p *postgres) start() {
	p.server, p.err = pgserver.Start(context.Background(), pgserver.Options{})
	if home := os.Getenv("EINMAL_TEST_POSTGRES"); errors.Is(p.err, pgserver.ErrNoBinaries) && home != "" {
		p.server, p.err = pgserver.At(home)
	}
	if p.err != nil {
		return
	}
	p.template = fmt.Sprintf("template_%d", os.Getpid())
	if p.err = p.server.CreateDatabase(context.Background(), p.template, ""); p.err != nil {
		return
	}
	p.err = migrate(context.Background(), p.server.URL(p.template))
}

// migratedFile is a migrated SQLite database, to be copied.
var migratedFile = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "einmal-template-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "test.db")
	if err := migrate(context.Background(), "sqlite:"+path); err != nil {
		return nil, err
	}
	return os.ReadFile(path) // all of it: closing the database has emptied its log
})

func migrate(ctx context.Context, url string) error {
	db, err := database.Open(ctx, url, database.Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	return migrations.Up(ctx, db, Service)
}

// Unprotect takes away what keeps events from being changed, for tests of what must be noticed then. On PostgreSQL that is a matter of
// grants, and tests connect as the owner.
func Unprotect(t testing.TB, db *database.DB) {
	t.Helper()
	if db.Kind() == database.Postgres {
		return
	}
	var triggers []string
	if err := db.Read(t.Context()).Raw("SELECT name FROM sqlite_master WHERE type = 'trigger'").Scan(&triggers).Error; err != nil {
		t.Fatal(err)
	}
	for _, trigger := range triggers {
		if _, err := db.SQL().ExecContext(t.Context(), "DROP TRIGGER "+trigger); err != nil {
			t.Fatal(err)
		}
	}
}
