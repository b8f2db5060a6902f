package database

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// Kind says which database a [DB] talks to.
type Kind string

const (
	Postgres Kind = "postgres"
	SQLite   Kind = "sqlite"
)

// Options are the settings of a connection pool. The zero value works.
type Options struct {
	// MaxConns bounds open connections. Default 16 on PostgreSQL: enough to keep two cores of a server busy, few enough
	// that several replicas stay under its usual limit of 100. Default 4 on SQLite: one writer and a few readers.
	MaxConns int

	// LockTimeout is how long a statement waits for a lock before the transaction fails with ErrBusy. Default 2 s, the
	// wait budget of a duplicate: waiting longer inside the database than in memory would hold a connection for nothing.
	LockTimeout time.Duration

	// Clock replaces the database's clock, for tests of what happens when time passes.
	Clock func() time.Time
}

// idleInTransaction is how long PostgreSQL lets a transaction sit idle before it ends it. A process that was frozen inside a
// claim (SIGSTOP, a paused virtual machine) would otherwise hold its key for ever.
const idleInTransaction = 10 * time.Second

// connectTimeout bounds one attempt to connect: an unreachable database must become a 503 while the caller still listens.
const connectTimeout = 3 * time.Second

// DB is a pool of connections to one database. It is safe for concurrent use.
type DB struct {
	kind   Kind
	gorm   *gorm.DB
	pool   *sql.DB
	clock  *clock
	begin  func(ctx context.Context) (transaction, error)
	writer *writer // SQLite's; nil on PostgreSQL
}

// Open connects to url, which is "postgres://…" or "sqlite:PATH", and measures the database's clock. It fails with an error
// that wraps ErrUnavailable when the database can't be reached. It does not migrate.
//
// Behind a pooler that hands out connections per transaction (PgBouncer before 1.21), add ?default_query_exec_mode=exec: prepared
// statements belong to a session, and there is none.
func Open(ctx context.Context, url string, opts Options) (*DB, error) {
	if opts.LockTimeout == 0 {
		opts.LockTimeout = 2 * time.Second
	}
	var db *DB
	var err error
	switch {
	case strings.HasPrefix(url, "postgres://"), strings.HasPrefix(url, "postgresql://"):
		db, err = openPostgres(url, opts)
	case strings.HasPrefix(url, "sqlite:"):
		db, err = openSQLite(strings.TrimPrefix(url, "sqlite:"), opts)
	default:
		// Not the URL itself: it may hold a password.
		return nil, fmt.Errorf("open database: the URL must begin with postgres:// or sqlite: (as in sqlite:./data/tickets.db)")
	}
	if err != nil {
		return nil, fmt.Errorf("open database: %w", classify(err))
	}
	db.clock, err = startClock(ctx, db, opts.Clock)
	if err != nil {
		db.pool.Close()
		if isMissing(err) {
			return nil, fmt.Errorf("open database: the server has none of this name; make it (createdb NAME), owned by the role in the URL: %w", classify(err))
		}
		return nil, fmt.Errorf("open database: read its clock: %w", classify(err))
	}
	return db, nil
}

// Kind says which database this is. Only this package, its tests and the migrations have a reason to ask.
func (db *DB) Kind() Kind { return db.kind }

// SQL is the pool below gorm, for migrations.
func (db *DB) SQL() *sql.DB { return db.pool }

// Now is the database's clock, UTC, in whole microseconds (what PostgreSQL keeps).
func (db *DB) Now() time.Time { return db.clock.now() }

// Ping reports, wrapping ErrUnavailable or ErrBusy, whether the database answers a query, and would take a write.
func (db *DB) Ping(ctx context.Context) error {
	if db.kind == SQLite {
		var one int
		return classify(db.pool.QueryRowContext(ctx, "SELECT 1").Scan(&one))
	}
	var readOnly bool
	err := db.pool.QueryRowContext(ctx, "SELECT current_setting('transaction_read_only')::boolean").Scan(&readOnly)
	if err == nil && readOnly {
		err = fmt.Errorf("%w: it takes no writes; is it a standby?", ErrUnavailable)
	}
	return classify(err)
}

// Read is for reads outside a transaction. Errors are as the driver gives them; see [Classify].
func (db *DB) Read(ctx context.Context) *gorm.DB { return db.gorm.WithContext(ctx) }

// Classify wraps an error of a statement run through Read with the sentinel that tells what it means, if it has one.
func Classify(err error) error { return classify(err) }

// Close ends the clock and closes every connection.
func (db *DB) Close() error {
	db.clock.stop()
	return db.pool.Close()
}

// gormConfig is gorm with what it does behind one's back turned off: every statement is in a transaction that we began, and
// statements are prepared once, by pgx (measured: gorm's own cache on top halves the throughput).
func gormConfig() *gorm.Config {
	return &gorm.Config{
		SkipDefaultTransaction: true,
		DisableAutomaticPing:   true, // it ignores the context; reading the clock connects
		PrepareStmt:            false,
		QueryFields:            true, // columns by name: with * a migration beside us breaks statements that are prepared
		// Every error is returned, and logged once by whoever answers for it. gorm's logger would spell out each statement, also
		// those it has nothing to say about (measured: a seventh of a request's allocations).
		Logger: logger.Discard,
	}
}
