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

// ByKeys runs fn for reads that join few rows with others by their keys, and must not become slower as the tables grow. It is a transaction, and
// what is written in it is forgotten.
func (db *DB) ByKeys(ctx context.Context, fn func(read *gorm.DB) error) error {
	tx, err := db.pool.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return fmt.Errorf("begin reading: %w", classify(err))
	}
	defer tx.Rollback() //nolint:errcheck // nothing is to stay; ending it is all there is to do
	if db.kind == Postgres {
		// A thousand look-ups by an index seem dearer to it than a table of some hundred thousand rows, which it then reads as a whole (measured: 75
		// ms where the look-ups take 5).
		if _, err := tx.ExecContext(ctx, "SELECT set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true)"); err != nil {
			return fmt.Errorf("begin reading: %w", classify(err))
		}
	}
	return classify(fn(db.session(ctx, tx)))
}
