package migrations_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/migrations"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/database/pgserver"
)

// migrateURL makes the test binary a process that migrates this database and ends.
const migrateURL = "MIGRATIONS_TEST_MIGRATE"

func TestMain(m *testing.M) {
	if url := os.Getenv(migrateURL); url != "" {
		if err := migrate(url); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func migrate(url string) error {
	db, err := database.Open(context.Background(), url, database.Options{})
	if err != nil {
		return err
	}
	return errors.Join(migrations.Up(context.Background(), db, "tickets"), db.Close())
}

// each runs a subtest for both databases; fresh makes the URL of a database that holds nothing.
func each(t *testing.T, test func(t *testing.T, fresh func() string)) {
	t.Run("SQLite", func(t *testing.T) {
		test(t, func() string { return "sqlite:" + filepath.Join(t.TempDir(), "tickets.db") })
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		server := dbtest.Server(t, pgserver.Options{})
		n := 0
		test(t, func() string {
			n++
			name := fmt.Sprintf("fresh_%d", n)
			if err := server.CreateDatabase(t.Context(), name, ""); err != nil {
				t.Fatal(err)
			}
			return server.URL(name)
		})
	})
}

func open(t *testing.T, url string, opts database.Options) *database.DB {
	t.Helper()
	db, err := database.Open(t.Context(), url, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func TestUp(t *testing.T) {
	each(t, func(t *testing.T, fresh func() string) {
		t.Run("brings an empty database to the newest version", func(t *testing.T) {
			db := open(t, fresh(), database.Options{})
			if got := pending(t, db); got < 3 {
				t.Errorf("an empty database lacks %d versions, want all of them", got)
			}
			if err := migrations.Complete(t.Context(), db, "tickets"); err == nil || !strings.Contains(err.Error(), "einmal migrate") {
				t.Errorf("Complete: %v, want an error that says what to run", err)
			}
			up(t, db)
			if got := pending(t, db); got != 0 {
				t.Errorf("%d versions pending after Up", got)
			}
			if err := migrations.Complete(t.Context(), db, "tickets"); err != nil {
				t.Errorf("Complete: %v", err)
			}
			for _, table := range []string{"operations", "events", "tickets"} {
				if got := rows(t, db, "SELECT count(*) FROM "+table); got != 0 {
					t.Errorf("%s has %d rows", table, got)
				}
			}
		})

		t.Run("does nothing the second time", func(t *testing.T) {
			db := open(t, fresh(), database.Options{})
			up(t, db)
			before := applied(t, db)
			up(t, db)
			if diff := cmp.Diff(before, applied(t, db)); diff != "" {
				t.Error(diff)
			}
		})

		t.Run("looks without changing anything", func(t *testing.T) {
			db := open(t, fresh(), database.Options{})
			before := pending(t, db)
			if db.Read(t.Context()).Migrator().HasTable("schema_shared") {
				t.Error("Pending made a table")
			}
			if got := pending(t, db); got != before {
				t.Errorf("%d versions pending, then %d", before, got)
			}
		})

		t.Run("works with a single connection", func(t *testing.T) {
			db := open(t, fresh(), database.Options{MaxConns: 1})
			up(t, db)
			if got := pending(t, db); got != 0 {
				t.Errorf("%d versions pending after Up", got)
			}
		})

		t.Run("applies each version once when eight processes start together", func(t *testing.T) {
			url := fresh()
			together(t, 8, func() error {
				process := exec.CommandContext(t.Context(), os.Args[0])
				process.Env = append(os.Environ(), migrateURL+"="+url)
				if out, err := process.CombinedOutput(); err != nil {
					return fmt.Errorf("%w: %s", err, out)
				}
				return nil
			})
			checkAppliedOnce(t, open(t, url, database.Options{}))
		})

		t.Run("applies each version once when eight pools of one process start together", func(t *testing.T) {
			url := fresh()
			together(t, 8, func() error { return migrate(url) })
			checkAppliedOnce(t, open(t, url, database.Options{}))
		})

		t.Run("leaves no lock behind", func(t *testing.T) {
			db := open(t, fresh(), database.Options{})
			if db.Kind() != database.Postgres {
				return // a lock of SQLite is a lock of its file, and ends with the transaction
			}
			up(t, db)
			if got := rows(t, db, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"); got != 0 {
				t.Errorf("%d advisory locks left", got)
			}
		})

		t.Run("fails for a service that has no migrations", func(t *testing.T) {
			db := open(t, fresh(), database.Options{})
			if err := migrations.Up(t.Context(), db, "nowhere"); err == nil || !strings.Contains(err.Error(), "nowhere") {
				t.Errorf("got %v, want an error that names the service", err)
			}
		})
	})
}

// A version that is recorded by another process between our look and our statements must fail ours, whatever they are:
// a data migration would succeed twice.
func TestAVersionIsRecordedOnce(t *testing.T) {
	each(t, func(t *testing.T, fresh func() string) {
		db := open(t, fresh(), database.Options{})
		up(t, db)
		for _, table := range []string{"schema_shared", "schema_tickets"} {
			_, err := db.SQL().ExecContext(t.Context(), "INSERT INTO "+table+" (version_id, is_applied) VALUES (1, true)")
			if err == nil {
				t.Errorf("%s records version 1 twice", table)
			}
		}
	})
}

func TestBothDatabasesHaveTheSameMigrations(t *testing.T) {
	if diff := cmp.Diff(files(t, "postgres"), files(t, "sqlite")); diff != "" {
		t.Errorf("postgres (-) and sqlite (+) differ:\n%s", diff)
	}
}

// Without a transaction the version's row would not commit with its statements.
func TestEveryMigrationRunsInATransaction(t *testing.T) {
	for _, tree := range []string{"postgres", "sqlite"} {
		for _, name := range files(t, tree) {
			content, err := os.ReadFile(filepath.Join(tree, name))
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(strings.ToUpper(string(content)), "NO TRANSACTION") {
				t.Errorf("%s/%s runs outside a transaction", tree, name)
			}
		}
	}
}

func files(t *testing.T, tree string) []string {
	t.Helper()
	var names []string
	err := fs.WalkDir(os.DirFS(tree), ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// together runs n calls at once and fails the test for every error.
func together(t *testing.T, n int, call func() error) {
	t.Helper()
	var group sync.WaitGroup
	for range n {
		group.Go(func() {
			if err := call(); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

func up(t *testing.T, db *database.DB) {
	t.Helper()
	if err := migrations.Up(t.Context(), db, "tickets"); err != nil {
		t.Fatal(err)
	}
}

func pending(t *testing.T, db *database.DB) int {
	t.Helper()
	n, err := migrations.Pending(t.Context(), db, "tickets")
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func checkAppliedOnce(t *testing.T, db *database.DB) {
	t.Helper()
	if got := pending(t, db); got != 0 {
		t.Errorf("%d versions pending", got)
	}
	for _, version := range applied(t, db) {
		if !strings.HasSuffix(version, " once") {
			t.Error(version)
		}
	}
}

// applied lists the recorded versions of both trees, "shared 1 once".
func applied(t *testing.T, db *database.DB) []string {
	t.Helper()
	var all []string
	for _, tree := range []string{"shared", "tickets"} {
		found, err := db.SQL().QueryContext(t.Context(),
			"SELECT version_id, count(*) FROM schema_"+tree+" GROUP BY version_id ORDER BY version_id")
		if err != nil {
			t.Fatal(err)
		}
		defer found.Close()
		for found.Next() {
			var version, times int
			if err := found.Scan(&version, &times); err != nil {
				t.Fatal(err)
			}
			often := "once"
			if times != 1 {
				often = fmt.Sprintf("%d times", times)
			}
			all = append(all, fmt.Sprintf("%s %d %s", tree, version, often))
		}
		if err := found.Err(); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func rows(t *testing.T, db *database.DB, query string) int {
	t.Helper()
	var n int
	if err := db.SQL().QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
