package faults

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"sync"

	_ "modernc.org/sqlite" // registers the driver "sqlite"

	"github.com/einmal/einmal/e2e/record"
)

// SQLiteLock is the write lock of an SQLite file, held by us: other processes read, and none writes.
type SQLiteLock struct {
	path   string
	db     *sql.DB
	conn   *sql.Conn
	once   sync.Once
	err    error
	record *record.Log
}

// LockSQLite takes the write lock, waiting for a writer to end. The file must be there.
func LockSQLite(ctx context.Context, path string) (*SQLiteLock, error) {
	query := url.Values{"mode": {"rw"}, "_pragma": {"busy_timeout(5000)"}}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Opaque: path, RawQuery: query.Encode()}).String())
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	conn, err := db.Conn(ctx)
	if err == nil {
		_, err = conn.ExecContext(ctx, "BEGIN IMMEDIATE")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), db.Close())
	}
	return &SQLiteLock{path: path, db: db, conn: conn}, nil
}

// Record notes that the lock is held, and when it is given back.
func (l *SQLiteLock) Record(log *record.Log) {
	l.record = log
	log.Place(record.Place{Address: l.path, Kind: record.Store, Name: "SQLite file"})
	log.Mark(l.path, record.Struck, "write lock held from outside")
}

// Release gives the lock back, having written nothing.
func (l *SQLiteLock) Release() error {
	l.once.Do(func() {
		_, err := l.conn.ExecContext(context.Background(), "ROLLBACK")
		l.record.Mark(l.path, record.Healed, "write lock given back")
		l.err = errors.Join(err, l.conn.Close(), l.db.Close())
	})
	return l.err
}
