package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// What a failed transaction means to whoever must answer for it. Match with errors.Is; the cause is wrapped.
var (
	// ErrUnavailable: the database could not be reached, or the connection was lost before COMMIT was sent.
	// Nothing was committed.
	ErrUnavailable = errors.New("database unavailable")

	// ErrBusy: a lock was not granted within the lock time-out, or no connection became free in time.
	// Nothing was committed; the same work may be tried later.
	ErrBusy = errors.New("database busy")

	// ErrSerialization: the database ended the transaction because of a concurrent one (SQLSTATE 40001, 40P01).
	// Nothing was committed; running the transaction again at once is the remedy.
	ErrSerialization = errors.New("transaction lost a race")

	// ErrNotMigrated: a table or a column that a statement names is not there, so the migrations of this release are not, or not yet.
	// Nothing was committed.
	ErrNotMigrated = errors.New("database lacks what a migration brings")

	// ErrCommitUnknown: COMMIT was sent and no answer came back. The transaction may have committed.
	// Only reading what it wrote, under a lock that waits for it to end, tells (docs/protocol.md rule 8).
	ErrCommitUnknown = errors.New("outcome of COMMIT unknown")
)

// PostgreSQL's codes that have a meaning here (appendix A of its manual).
const (
	pgSerializationFailure  = "40001"
	pgDeadlockDetected      = "40P01"
	pgLockNotAvailable      = "55P03"
	pgIdleInTransaction     = "25P03"
	pgReadOnly              = "25006" // a standby, or a server that was made one: writes belong elsewhere now
	pgDuplicateStatement    = "42P05" // a transaction pooler gave us a session in which another has prepared,
	pgUndefinedStatement    = "26000" // or one in which we have not; see Open
	pgInvalidCatalogName    = "3D000" // no database of this name
	pgUndefinedTable        = "42P01"
	pgUndefinedColumn       = "42703"
	pgClassConnection       = "08" // connection exceptions
	pgClassOperator         = "57" // administrator shutdown, crash shutdown, cannot connect now
	pgQueryCanceled         = "57014"
	pgClassInsufficientDisk = "53"
)

// classify wraps err with the sentinel that tells what it means; an error without such a meaning is returned as it is.
// It is for everything before COMMIT is sent: after that see commitError.
func classify(err error) error {
	if err == nil || isClassified(err) {
		return err
	}
	var pg *pgconn.PgError
	var connect *pgconn.ConnectError
	var lite *sqlite.Error
	switch {
	case errors.As(err, &connect): // whatever refused it: also a wrong password, a database that is gone, a server that did not answer in time
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	case errors.As(err, &pg):
		return classifyPostgres(err, pg.Code)
	case errors.As(err, &lite):
		return classifySQLite(err, lite.Code())
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return fmt.Errorf("%w: %w", ErrBusy, err)
	case isConnectionLoss(err):
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}

// isMissing reports whether a server has no database of the name that it was asked for.
func isMissing(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == pgInvalidCatalogName
}

func classifyPostgres(err error, code string) error {
	switch {
	case code == pgSerializationFailure, code == pgDeadlockDetected:
		return fmt.Errorf("%w: %w", ErrSerialization, err)
	case code == pgLockNotAvailable, code == pgQueryCanceled:
		return fmt.Errorf("%w: %w", ErrBusy, err)
	case code == pgReadOnly, code == pgDuplicateStatement, code == pgUndefinedStatement:
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	case code == pgUndefinedTable, code == pgUndefinedColumn:
		return fmt.Errorf("%w: %w", ErrNotMigrated, err)
	case code == pgIdleInTransaction, code[:2] == pgClassConnection, code[:2] == pgClassOperator, code[:2] == pgClassInsufficientDisk:
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}

func classifySQLite(err error, code int) error {
	switch code & 0xff { // the primary code; the rest says which variant
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return fmt.Errorf("%w: %w", ErrBusy, err)
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT:
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	case sqlite3.SQLITE_ERROR: // of everything that has no code of its own, only the text tells which
		if strings.Contains(err.Error(), "no such table") || strings.Contains(err.Error(), "no such column") || strings.Contains(err.Error(), "has no column named") {
			return fmt.Errorf("%w: %w", ErrNotMigrated, err)
		}
	case sqlite3.SQLITE_INTERRUPT: // the work's deadline ended the statement
		return fmt.Errorf("%w: %w", ErrBusy, err)
	}
	return err
}

// commitError says what a failed COMMIT means. A database that answered the COMMIT with an error has rolled back;
// anything else is an answer that never came.
func commitError(err error) error {
	if err == nil {
		return nil
	}
	var pg *pgconn.PgError
	var lite *sqlite.Error
	switch {
	case errors.As(err, &pg) && pg.Code[:2] != pgClassOperator && pg.Code[:2] != pgClassConnection,
		errors.As(err, &lite) && refusesCommit(lite.Code()),
		errors.Is(err, sql.ErrConnDone): // it was not even sent
		return classify(err)
	}
	return fmt.Errorf("%w: %w", ErrCommitUnknown, err)
}

// refusesCommit tells SQLite's refusals of a COMMIT, which leave the transaction open (and the driver rolls it back), from
// failures to write, after which only a later look tells what is in the file.
func refusesCommit(code int) bool {
	primary := code & 0xff
	return primary == sqlite3.SQLITE_BUSY || primary == sqlite3.SQLITE_CONSTRAINT
}

func isClassified(err error) bool {
	return errors.Is(err, ErrUnavailable) || errors.Is(err, ErrBusy) || errors.Is(err, ErrSerialization) ||
		errors.Is(err, ErrNotMigrated) || errors.Is(err, ErrCommitUnknown)
}

func isConnectionLoss(err error) bool {
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || pgconn.SafeToRetry(err) || strings.Contains(err.Error(), poolClosed)
}

// poolClosed is what database/sql says when Close has been called, as for requests that a shutdown did not wait for. It keeps the
// error itself to itself.
const poolClosed = "sql: database is closed"
