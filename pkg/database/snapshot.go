package database

import (
	"context"
	"database/sql"
	"fmt"

	"gorm.io/gorm"
)

// Snapshot runs fn on one unchanging state of the whole database, for reads of whole tables that must agree with each other. It
// blocks no writer. What is written in it fails (PostgreSQL) or is forgotten (SQLite).
func (db *DB) Snapshot(ctx context.Context, fn func(read *gorm.DB) error) error {
	options := &sql.TxOptions{ReadOnly: true} // on SQLite every transaction is a snapshot
	if db.kind == Postgres {
		options.Isolation = sql.LevelRepeatableRead
	}
	tx, err := db.pool.BeginTx(ctx, options)
	if err != nil {
		return fmt.Errorf("begin snapshot: %w", classify(err))
	}
	defer tx.Rollback() //nolint:errcheck // nothing is to stay; ending it is all there is to do
	if db.kind == Postgres {
		// Without statistics it takes every table for a small one. A nested loop over whole tables then lasts minutes, where the
		// other joins take a second.
		if _, err := tx.ExecContext(ctx, "SET LOCAL enable_nestloop = off"); err != nil {
			return fmt.Errorf("begin snapshot: %w", classify(err))
		}
	}
	return classify(fn(db.session(ctx, tx)))
}
