package harness

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	_ "github.com/jackc/pgx/v5/stdlib" // registers the driver "pgx"
	_ "modernc.org/sqlite"             // registers the driver "sqlite"

	"github.com/einmal/einmal/pkg/database"
)

// Database is one database, fresh and empty: services migrate it when they start.
type Database struct {
	URL  string
	Path string // of the file; empty on PostgreSQL

	lab  *Lab
	name string
	pool *sql.DB
}

// NewDatabase makes a database that lasts until the laboratory is cleared.
func (l *Lab) NewDatabase(ctx context.Context) (*Database, error) {
	d := &Database{lab: l}
	var err error
	if l.Kind == database.SQLite {
		d.Path = filepath.Join(l.path("sqlite"), "tickets.db")
		d.URL = "sqlite:" + d.Path
		// Reading only, and with its own lock time-out: looking must not disturb.
		query := url.Values{"mode": {"ro"}, "_pragma": {"busy_timeout(5000)"}}
		d.pool, err = sql.Open("sqlite", (&url.URL{Scheme: "file", Opaque: d.Path, RawQuery: query.Encode()}).String())
	} else {
		d.name = "einmal_scenario_" + strings.ToLower(rand.Text()[:12])
		d.URL = l.Server.URL(d.name)
		if err = l.Server.CreateDatabase(ctx, d.name, ""); err == nil {
			d.pool, err = sql.Open("pgx", d.URL)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("make a database: %w", err)
	}
	d.pool.SetMaxIdleConns(-1) // a connection for each look: a kept one would be cut whenever the server is
	l.mu.Lock()
	defer l.mu.Unlock()
	l.databases = append(l.databases, d)
	return d, nil
}

// Count runs a query that returns one number, on a connection that no service and no proxy knows of. Arguments are $1, $2 … .
func (d *Database) Count(ctx context.Context, query string, args ...any) (int, error) {
	var n int
	if err := d.pool.QueryRowContext(ctx, query, args...).Scan(&n); err != nil {
		return 0, fmt.Errorf("count rows: %w", err)
	}
	return n, nil
}

// Fsck runs `einmal fsck` on the database. What it found is in the error.
func (d *Database) Fsck(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, d.lab.binary, "fsck")
	cmd.Env = environment("EINMAL_DATABASE_URL=" + d.URL)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("einmal fsck: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// WriteLocked tells whether somebody holds SQLite's write lock at this moment.
func (d *Database) WriteLocked(ctx context.Context) (bool, error) {
	query := url.Values{"mode": {"rw"}, "_pragma": {"busy_timeout(0)"}}
	pool, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Opaque: d.Path, RawQuery: query.Encode()}).String())
	if err != nil {
		return false, fmt.Errorf("look at the write lock: %w", err)
	}
	defer pool.Close()
	pool.SetMaxOpenConns(1) // BEGIN and ROLLBACK belong to one connection
	if _, err := pool.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		if strings.Contains(err.Error(), "SQLITE_BUSY") {
			return true, nil
		}
		return false, fmt.Errorf("look at the write lock: %w", err)
	}
	_, err = pool.ExecContext(ctx, "ROLLBACK")
	return false, err
}

func (d *Database) drop(ctx context.Context) error {
	err := d.pool.Close()
	if d.Path != "" {
		return errors.Join(err, os.RemoveAll(filepath.Dir(d.Path)))
	}
	return errors.Join(err, d.lab.Server.DropDatabase(ctx, d.name))
}
