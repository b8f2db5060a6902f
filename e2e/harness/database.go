package harness

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	_ "github.com/jackc/pgx/v5/stdlib" // registers the driver "pgx"
	_ "modernc.org/sqlite"             // registers the driver "sqlite"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/pgserver"
)

// Database is one database, fresh and empty: services migrate it when they start.
type Database struct {
	URL  string
	Path string // of the file; empty on PostgreSQL

	// Service is whose tables it holds, for Fsck; empty: the tickets service's.
	Service string

	lab    *Lab
	name   string
	server *pgserver.Server
	pool   *sql.DB
}

// NewDatabase makes a database that lasts until the laboratory is closed.
func (l *Lab) NewDatabase(ctx context.Context) (*Database, error) {
	if l.Kind == database.Postgres {
		return l.NewDatabaseAt(ctx, l.Server)
	}
	d := &Database{lab: l, URL: l.EmbeddedURL("tickets")}
	d.Path = strings.TrimPrefix(d.URL, "sqlite:")
	// Reading only, and with its own lock time-out: looking must not disturb.
	query := url.Values{"mode": {"ro"}, "_pragma": {"busy_timeout(5000)"}}
	pool, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Opaque: d.Path, RawQuery: query.Encode()}).String())
	return l.keep(d, pool, err)
}

// NewDatabaseAt makes one on a server of the laboratory, as NewDatabase does on its first.
func (l *Lab) NewDatabaseAt(ctx context.Context, server *pgserver.Server) (*Database, error) {
	d := &Database{lab: l, server: server, name: "einmal_scenario_" + strings.ToLower(rand.Text()[:12])}
	d.URL = server.URL(d.name)
	err := server.CreateDatabase(ctx, d.name, "")
	if err != nil {
		return nil, fmt.Errorf("make a database: %w", err)
	}
	pool, err := sql.Open("pgx", d.URL)
	return l.keep(d, pool, err)
}

// EmbeddedURL is the URL of an embedded database that does not exist yet. It goes when the laboratory is closed.
func (l *Lab) EmbeddedURL(name string) string {
	return "sqlite:" + filepath.Join(l.path("sqlite"), name+".db")
}

func (l *Lab) keep(d *Database, pool *sql.DB, err error) (*Database, error) {
	if err != nil {
		return nil, fmt.Errorf("make a database: %w", err)
	}
	d.pool = pool
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

// Text runs a query that returns one text, likewise.
func (d *Database) Text(ctx context.Context, query string, args ...any) (string, error) {
	var text string
	if err := d.pool.QueryRowContext(ctx, query, args...).Scan(&text); err != nil {
		return "", fmt.Errorf("read a row: %w", err)
	}
	return text, nil
}

// Columns are the names of a table's columns.
func (d *Database) Columns(ctx context.Context, table string) ([]string, error) {
	rows, err := d.pool.QueryContext(ctx, "SELECT * FROM "+table+" WHERE 1 = 0")
	if err != nil {
		return nil, fmt.Errorf("read columns: %w", err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	return columns, errors.Join(err, rows.Err())
}

// Change runs statements in one transaction, behind the services' backs.
func (d *Database) Change(ctx context.Context, statements ...string) error {
	pool, err := d.open()
	if err != nil {
		return fmt.Errorf("change rows: %w", err)
	}
	defer pool.Close()
	tx, err := pool.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("change rows: %w", err)
	}
	defer tx.Rollback() //nolint:errcheck // after the commit there is nothing to roll back
	for _, statement := range statements {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("change rows: %w in %s", err, statement)
		}
	}
	return tx.Commit()
}

// open opens a connection that may write.
func (d *Database) open() (*sql.DB, error) {
	if d.Path != "" {
		return sql.Open("sqlite", d.writable(5000))
	}
	return sql.Open("pgx", d.URL)
}

// Fsck runs `einmal fsck` on the database, against a ledger if there is one. What it found is in the error.
func (d *Database) Fsck(ctx context.Context, ledger string) error {
	cmd := exec.CommandContext(ctx, d.lab.binary, "fsck", "--service", cmp.Or(d.Service, "tickets"), "--ledger", ledger)
	cmd.Env = environment("EINMAL_DATABASE_URL=" + d.URL)
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(string(out)), "\n"), func(line string) bool { return strings.HasPrefix(line, "   holds: ") })
	return fmt.Errorf("einmal fsck: %w: %s", err, strings.Join(lines, "\n"))
}

// AuditVerify runs `einmal audit verify` on the database and what its services have kept outside. What it found is in the error.
func (d *Database) AuditVerify(ctx context.Context) error {
	_, err := d.Audit(ctx, "verify")
	return err
}

// Audit runs a command of `einmal audit` on the database, and returns what it printed.
func (d *Database) Audit(ctx context.Context, command string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, d.lab.binary, append([]string{"audit", command, "--service", cmp.Or(d.Service, "tickets")}, args...)...)
	cmd.Env = environment("EINMAL_DATABASE_URL="+d.URL, "EINMAL_AUDIT_DIR="+d.AuditDir())
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("einmal audit %s: %w: %s", command, err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// AuditDir is where the services of the database keep what must not be in it.
func (d *Database) AuditDir() string { return d.lab.auditDir(d.URL) }

// auditDir is one for each database, whatever stands between it and a service.
func (l *Lab) auditDir(databaseURL string) string {
	u, err := url.Parse(databaseURL)
	if err != nil {
		return filepath.Join(l.dir, "audit") // the service will say what is wrong with its URL
	}
	path := cmp.Or(u.Path, u.Opaque)
	return filepath.Join(l.dir, "audit", filepath.Base(filepath.Dir(path))+"-"+filepath.Base(path))
}

// WriteLocked tells whether somebody holds SQLite's write lock at this moment.
func (d *Database) WriteLocked(ctx context.Context) (bool, error) {
	pool, err := sql.Open("sqlite", d.writable(0))
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

// writable names the file for a connection that may write, and waits so many milliseconds for the lock.
func (d *Database) writable(busyTimeout int) string {
	query := url.Values{"mode": {"rw"}, "_pragma": {fmt.Sprintf("busy_timeout(%d)", busyTimeout)}}
	return (&url.URL{Scheme: "file", Opaque: d.Path, RawQuery: query.Encode()}).String()
}

func (d *Database) drop(ctx context.Context) error {
	err := d.pool.Close()
	if d.Path != "" {
		return errors.Join(err, os.RemoveAll(filepath.Dir(d.Path)))
	}
	return errors.Join(err, d.server.DropDatabase(ctx, d.name))
}
