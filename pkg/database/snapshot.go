package database

import (
	"context"
	"database/sql"
	"fmt"

	"gorm.io/gorm"
)

// Snapshot runs fn on one unchanging state of the whole database, for reads that must agree with each other. It blocks no
// writer. What is written in it fails (PostgreSQL) or is forgotten (SQLite).
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
	return classify(fn(db.session(ctx, tx)))
}
