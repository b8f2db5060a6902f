package faults_test

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"github.com/einmal/einmal/e2e/faults"
)

func TestSQLiteLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	db, err := sql.Open("sqlite", path)
	must(t, err)
	defer db.Close()
	_, err = db.ExecContext(t.Context(), "PRAGMA journal_mode(WAL); CREATE TABLE t (n)")
	must(t, err)

	lock, err := faults.LockSQLite(t.Context(), path)
	must(t, err)
	var n int
	must(t, db.QueryRowContext(t.Context(), "SELECT count(*) FROM t").Scan(&n)) // reading goes on
	if _, err := db.ExecContext(t.Context(), "INSERT INTO t VALUES (1)"); err == nil || !strings.Contains(err.Error(), "SQLITE_BUSY") {
		t.Fatalf("write while locked: %v, want SQLITE_BUSY", err)
	}
	must(t, lock.Release())
	must(t, lock.Release())
	_, err = db.ExecContext(t.Context(), "INSERT INTO t VALUES (1)")
	must(t, err)
}
