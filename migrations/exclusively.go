package migrations

import (
	"context"
	"fmt"

	"github.com/einmal/einmal/pkg/database"
)

// lockNumber names the lock among the advisory locks of a PostgreSQL database: "einmal" in ASCII, so that it can be
// recognised in pg_locks.
const lockNumber = 0x65696e6d616c

// exclusively keeps replicas that start together from running the same statements side by side, which on PostgreSQL
// would end in lock time-outs instead of a wait. It saves effort; the unique version row is what is relied on.
//
// The lock belongs to a transaction of its own, never to a session: behind a pooler that hands out connections per
// transaction a session's lock is taken on one connection and released on another. A migrator that dies loses its
// connection and with it the lock. SQLite needs none, it has one writer.
func exclusively(ctx context.Context, db *database.DB, migrate func() error) error {
	// The lock occupies a connection while goose uses another.
	if db.Kind() != database.Postgres || db.SQL().Stats().MaxOpenConnections == 1 {
		return migrate()
	}
	tx, err := db.SQL().BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("lock migrations: %w", err)
	}
	defer tx.Rollback() //nolint:errcheck // it wrote nothing; ending it releases the lock, and so does its failure

	for _, statement := range []string{
		// Waiting for another migrator and idling while goose works are what this transaction is for: the limits of
		// ordinary transactions are not meant for it. ctx ends it.
		"SET LOCAL lock_timeout = 0",
		"SET LOCAL statement_timeout = 0",
		"SET LOCAL idle_in_transaction_session_timeout = 0",
		fmt.Sprintf("SELECT pg_advisory_xact_lock(%d)", lockNumber),
	} {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("lock migrations: %w", err)
		}
	}
	return migrate()
}
