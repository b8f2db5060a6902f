package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/libtnb/sqlite"
	"gorm.io/gorm"
	modernc "modernc.org/sqlite"
)

func openSQLite(path string, opts Options) (*DB, error) {
	switch {
	case path == "" || strings.HasPrefix(path, "//"):
		return nil, fmt.Errorf("sqlite: needs a path, as in sqlite:./data/einmal_tickets.db")
	case strings.HasPrefix(path, ":memory:"):
		return nil, fmt.Errorf("sqlite: a database in memory forgets every key when the process ends; give it a path")
	}
	if err := makePrivate(path); err != nil {
		return nil, err
	}
	if opts.MaxConns == 0 {
		opts.MaxConns = 4
	}
	connector, err := modernc.NewConnector(sqliteDSN(path, opts.LockTimeout))
	if err != nil {
		return nil, err
	}
	pool := sql.OpenDB(keeping{connector})
	pool.SetMaxOpenConns(opts.MaxConns)
	pool.SetMaxIdleConns(opts.MaxConns)
	if err := firstConnection(pool, opts.LockTimeout); err != nil {
		pool.Close()
		return nil, err
	}
	g, err := gorm.Open(sqlite.New(sqlite.Config{Conn: pool}), gormConfig())
	if err != nil {
		pool.Close()
		return nil, err
	}
	w := &writer{pool: pool}
	return &DB{kind: SQLite, gorm: g, pool: pool, begin: w.join, writer: w}, nil
}

// makePrivate makes the file, if there is none, and its directory for this user only: the keys in it are secrets while their
// operations can be replayed. What can't be written is found out here, not by the first request.
func makePrivate(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return file.Close()
}

// firstConnection makes the connection that turns a new file to write-ahead logging. Processes that start together on a new
// file trip over each other there: SQLite wants the file for itself and, whatever busy_timeout says, does not wait for it.
func firstConnection(pool *sql.DB, patience time.Duration) error {
	const pause = 5 * time.Millisecond // the switch takes about one
	for end := time.Now().Add(patience); ; <-time.After(pause) {
		err := pool.PingContext(context.Background()) // it is bounded by patience
		if err == nil || !errors.Is(classify(err), ErrBusy) || time.Now().After(end) {
			return err
		}
	}
}

// sqliteDSN asks for: write-ahead log, so that readers never wait for the writer; synchronous=FULL, so that a commit survives
// a power cut; BEGIN IMMEDIATE, because a transaction that reads before it writes can't upgrade its lock while another writes
// (busy_timeout does not help there); UTC, because times are text and compared as such; no rewriting of text that looks like
// a time.
func sqliteDSN(path string, lockTimeout time.Duration) string {
	q := url.Values{}
	q.Add("_pragma", "journal_mode(WAL)")
	q.Add("_pragma", fmt.Sprintf("busy_timeout(%d)", lockTimeout.Milliseconds()))
	q.Add("_pragma", "foreign_keys(1)")
	q.Add("_pragma", "synchronous(FULL)")
	q.Set("_txlock", "immediate")
	q.Set("_timezone", "UTC")
	q.Set("_texttotime", "0")
	return (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: q.Encode()}).String()
}
