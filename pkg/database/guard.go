package database

import (
	"context"
	"database/sql"
	"fmt"

	"gorm.io/gorm"
)

// guard passes the statements of a transaction on until one fails. From then on it refuses them, and InTx does not commit:
// a failure that was swallowed would otherwise store what surrounds it. Left to themselves the databases differ: PostgreSQL
// refuses what follows, unless BEGIN was lost with the statement; SQLite undoes the one statement, or, if it was interrupted,
// the whole transaction, and then stores what follows outside of any.
type guard struct {
	pool   gorm.ConnPool
	failed *error // the first failure, one for all guards of a transaction
}

func (g guard) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if *g.failed != nil {
		return nil, g.refusal()
	}
	result, err := g.pool.ExecContext(ctx, query, args...)
	g.note(err)
	return result, err
}

func (g guard) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if *g.failed != nil {
		return nil, g.refusal()
	}
	rows, err := g.pool.QueryContext(ctx, query, args...)
	g.note(err)
	return rows, err
}

func (g guard) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if *g.failed != nil {
		// Only database/sql makes a Row that holds an error. With a context that is over it sends nothing.
		over, cancel := context.WithCancel(ctx)
		cancel()
		return g.pool.QueryRowContext(over, query, args...)
	}
	row := g.pool.QueryRowContext(ctx, query, args...)
	g.note(row.Err())
	return row
}

func (g guard) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	if *g.failed != nil {
		return nil, g.refusal()
	}
	statement, err := g.pool.PrepareContext(ctx, query)
	g.note(err)
	return statement, err
}

func (g guard) note(err error) {
	if err != nil {
		*g.failed = err
	}
}

func (g guard) refusal() error { return fmt.Errorf("%w: %w", errAborted, *g.failed) }
