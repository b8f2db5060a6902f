package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

func openPostgres(url string, opts Options) (*DB, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, err // pgx masks the password
	}
	if opts.MaxConns == 0 {
		opts.MaxConns = 16
	}
	config.ConnectTimeout = connectTimeout
	if _, set := config.RuntimeParams["application_name"]; !set {
		config.RuntimeParams["application_name"] = "einmal"
	}
	begin := settings(config.RuntimeParams, opts.LockTimeout)
	pool := stdlib.OpenDB(*config, stdlib.OptionAfterConnect(readTimesInUTC))
	pool.SetMaxOpenConns(opts.MaxConns)
	pool.SetMaxIdleConns(opts.MaxConns) // fewer (database/sql keeps 2) means connecting anew under load: a quarter of the throughput
	g, err := gorm.Open(postgres.New(postgres.Config{Conn: pool}), gormConfig())
	if err != nil {
		pool.Close()
		return nil, err
	}
	db := &DB{kind: Postgres, gorm: g, pool: pool}
	db.begin = func(ctx context.Context) (transaction, error) {
		conn, err := pool.Conn(ctx)
		return &postgresTx{conn: conn, settings: begin}, err
	}
	return db, nil
}

// readTimesInUTC is for times that go from here into answers: pgx would give them in the zone of this machine.
func readTimesInUTC(_ context.Context, conn *pgx.Conn) error {
	conn.TypeMap().RegisterType(&pgtype.Type{
		Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC},
	})
	return nil
}

// postgresTx is a transaction that saves round trips: BEGIN leaves with the first statement, and what was queued leaves with
// COMMIT. It speaks to pgx below database/sql for those two batches only.
type postgresTx struct {
	conn     *sql.Conn
	settings statement
	begun    bool
	last     []statement
}

type statement struct {
	query string
	args  []any
}

// begin is how a transaction begins: with settings of its own, which leave in the same round trip. Settings of the session would
// get lost behind a transaction pooler, or reach somebody else's transactions.
func (t *postgresTx) begin() []statement { return []statement{{query: "begin"}, t.settings} }

// settings bounds the waits of a transaction, and its idleness, unless the URL has bounds of its own. It also insists that COMMIT
// waits for the disk (and for standbys, if the server is told to): a claim, a take or a settle that a crash forgets would be run
// again.
func settings(url map[string]string, lockTimeout time.Duration) statement {
	bound := func(name string, d time.Duration) string {
		value, set := url[name]
		if !set {
			return strconv.FormatInt(d.Milliseconds(), 10)
		}
		delete(url, name) // it is said in each transaction
		return value
	}
	return statement{
		query: `SELECT set_config('lock_timeout', $1, true), set_config('idle_in_transaction_session_timeout', $2, true),
			set_config('synchronous_commit', CASE WHEN current_setting('synchronous_commit') IN ('off', 'local') THEN 'on'
				ELSE current_setting('synchronous_commit') END, true)`,
		args: []any{bound("lock_timeout", lockTimeout), bound("idle_in_transaction_session_timeout", idleInTransaction)},
	}
}

func (t *postgresTx) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if t.begun {
		return t.conn.ExecContext(ctx, query, args...)
	}
	affected, err := t.send(ctx, append(t.begin(), statement{query, args})...)
	return driver.RowsAffected(affected), err
}

func (t *postgresTx) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if err := t.ensureBegun(ctx); err != nil {
		return nil, err
	}
	return t.conn.QueryContext(ctx, query, args...)
}

func (t *postgresTx) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	_ = t.ensureBegun(ctx) // the connection that could not BEGIN is closed, so the query below fails with the same loss
	return t.conn.QueryRowContext(ctx, query, args...)
}

func (t *postgresTx) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	if err := t.ensureBegun(ctx); err != nil {
		return nil, err
	}
	return t.conn.PrepareContext(ctx, query)
}

func (t *postgresTx) queue() gorm.ConnPool { return commitQueue{t} }

func (t *postgresTx) commit(ctx context.Context) error {
	if !t.begun && len(t.last) == 0 {
		return nil
	}
	batch := t.last
	if !t.begun {
		batch = append(t.begin(), batch...)
	}
	_, err := t.send(ctx, append(batch, statement{query: "commit"})...)
	if err != nil && t.begun {
		// The server may still be in the (failed) transaction. If it is out of reach, release drops the connection.
		_ = t.rollback(ctx)
	}
	if errors.Is(err, errAborted) {
		return err
	}
	return commitError(err)
}

func (t *postgresTx) rollback(ctx context.Context) error {
	if !t.begun {
		return nil
	}
	t.begun = false
	if _, err := t.conn.ExecContext(ctx, "rollback"); err != nil {
		// Whatever state the session is in, closing it ends its transaction.
		_ = t.conn.Raw(func(any) error { return driver.ErrBadConn })
	}
	return nil
}

func (t *postgresTx) release() { t.conn.Close() }

// lockCondition takes the transaction-scoped advisory lock if nobody else has it. It is released by COMMIT or ROLLBACK, also
// when the session dies, and works behind a transaction pooler.
func (t *postgresTx) lockCondition(hash int64) clause.Expr {
	return clause.Expr{SQL: "pg_try_advisory_xact_lock(?)", Vars: []any{hash}}
}

func (t *postgresTx) ensureBegun(ctx context.Context) error {
	if t.begun {
		return nil
	}
	_, err := t.send(ctx, t.begin()...)
	return err
}

// send runs the statements in one round trip and returns the rows affected by the last. The first failure ends the batch: the
// server skips the rest.
func (t *postgresTx) send(ctx context.Context, statements ...statement) (affected int64, err error) {
	t.begun = t.begun || statements[0].query == "begin"
	err = t.conn.Raw(func(driverConn any) error {
		batch := &pgx.Batch{}
		for _, s := range statements {
			batch.Queue(s.query, s.args...)
		}
		conn := driverConn.(*stdlib.Conn).Conn()
		results := conn.SendBatch(ctx, batch)
		for _, s := range statements {
			tag, err := results.Exec()
			if err != nil {
				results.Close()
				if conn.IsClosed() { // tell database/sql to forget it, and keep the cause
					return fmt.Errorf("%w: %w", driver.ErrBadConn, err)
				}
				return err
			}
			affected = tag.RowsAffected()
			if s.query == "commit" && tag.String() == "ROLLBACK" {
				results.Close()
				return errAborted
			}
		}
		return results.Close()
	})
	return affected, err
}

// commitQueue collects statements instead of sending them.
type commitQueue struct{ *postgresTx }

func (q commitQueue) ExecContext(_ context.Context, query string, args ...any) (sql.Result, error) {
	q.last = append(q.last, statement{query, args})
	return driver.ResultNoRows, nil
}

func (q commitQueue) QueryContext(context.Context, string, ...any) (*sql.Rows, error) {
	return nil, errors.New("query at commit: AtCommit is for writes that return no rows")
}
