package database

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// commitTimeout bounds the wait for COMMIT's answer. A COMMIT is never canceled with the request it belongs to, since that
// would turn a known outcome into an unknown one; but a database that has gone silent must not hold a worker for ever.
const commitTimeout = 10 * time.Second

// Tx is an open transaction. It is passed as a parameter, never hidden in a context: whether a function runs inside a
// transaction is the most important fact about it.
type Tx struct {
	*gorm.DB

	// Now is the one time of this transaction: the database's clock, UTC, whole microseconds.
	Now time.Time

	open   transaction
	failed *error // see guard
}

// transaction is what the two databases do differently.
type transaction interface {
	gorm.ConnPool
	// queue is where statements go that may leave together with COMMIT.
	queue() gorm.ConnPool
	commit(ctx context.Context) error
	// rollback always takes back what was written. An error says that what was read is not so either.
	rollback(ctx context.Context) error
	// lockCondition is LockCondition for a hashed name.
	lockCondition(hash int64) clause.Expr
	// release gives the connection back.
	release()
}

// InTx runs fn in a transaction and commits it when fn returns nil. An error of fn, or a panic, rolls back and is passed on;
// so does a statement that failed, whatever fn made of it. Every error is wrapped with the sentinel that says what it means (errors.go): unless it is ErrCommitUnknown, nothing was
// committed. The context bounds everything but the COMMIT.
func (db *DB) InTx(ctx context.Context, fn func(tx Tx) error) (err error) {
	open, err := db.begin(ctx)
	if err != nil {
		return fmt.Errorf("begin transaction: %w", classify(err))
	}
	defer open.release()

	committing := false
	defer func() {
		if !committing { // fn failed or panicked
			undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), connectTimeout)
			defer cancel()
			if lost := open.rollback(undo); lost != nil {
				err = fmt.Errorf("roll back transaction, after %v: %w", err, lost) //nolint:errorlint // nobody is to match err: it may follow from what is lost
			}
		}
	}()
	var failed error
	tx := Tx{DB: db.session(ctx, guard{open, &failed}), Now: db.Now(), open: open, failed: &failed}
	if err := fn(tx); err != nil {
		return classify(err)
	}
	if failed != nil {
		return fmt.Errorf("commit transaction: %w: %w", errAborted, classify(failed))
	}
	committing = true
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	if err := open.commit(ctx); err != nil {
		return fmt.Errorf("commit transaction: %w", err)
	}
	return nil
}

// AtCommit is for writes whose result nobody reads: their statements leave together with COMMIT, in one round trip
// (measured: round trips, not commits, are what a transaction costs). RowsAffected is not known. A statement that fails
// fails the transaction.
func (tx Tx) AtCommit() *gorm.DB {
	at := tx.Session(&gorm.Session{NewDB: true, Context: tx.Statement.Context})
	at.Statement.ConnPool = guard{tx.open.queue(), tx.failed}
	return at
}

// session is gorm with every statement going through pool.
func (db *DB) session(ctx context.Context, pool gorm.ConnPool) *gorm.DB {
	session := db.gorm.Session(&gorm.Session{NewDB: true, Context: ctx})
	session.Statement.ConnPool = pool
	return session
}

// errAborted: a statement of the transaction failed and the failure was swallowed; or PostgreSQL answered COMMIT with
// ROLLBACK, which it does when one failed unseen, while its rows were read.
var errAborted = errors.New("the transaction had failed before COMMIT and was rolled back")
