package database

import (
	"context"
	"database/sql/driver"
	"errors"
)

// maxStatements bounds what a connection keeps. A service has some dozens of texts; whoever has more makes new ones all the time, and
// keeping those would help nobody.
const maxStatements = 256

// keeping makes connections to SQLite that keep the statements which they have parsed. That is most of what SQLite does for a short
// one (measured: 500 effects a second instead of 300).
type keeping struct{ driver.Connector }

func (k keeping) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := k.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return keeper{conn.(sqliteConn), map[string]sqliteStatement{}}, nil
}

// What the driver's own types can do, as far as database/sql asks for it.
type (
	sqliteConn interface {
		driver.Conn
		driver.ConnBeginTx
		driver.ConnPrepareContext
		driver.Pinger
		driver.SessionResetter
		driver.Validator
	}
	sqliteStatement interface {
		driver.Stmt
		driver.StmtExecContext
		driver.StmtQueryContext
	}
	sqliteRows interface {
		driver.RowsColumnTypeDatabaseTypeName
		driver.RowsColumnTypeLength
		driver.RowsColumnTypeNullable
		driver.RowsColumnTypePrecisionScale
		driver.RowsColumnTypeScanType
	}
)

// keeper is a connection and the statements of it that nobody is using. database/sql calls it one call at a time.
type keeper struct {
	sqliteConn
	kept map[string]sqliteStatement
}

func (k keeper) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	s, err := k.take(ctx, query)
	if err != nil {
		return nil, err
	}
	result, err := s.ExecContext(ctx, args)
	return result, errors.Join(err, k.keep(query, s))
}

func (k keeper) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	s, err := k.take(ctx, query)
	if err != nil {
		return nil, err
	}
	rows, err := s.QueryContext(ctx, args)
	if err != nil {
		return nil, errors.Join(err, k.keep(query, s))
	}
	return &keptRows{rows.(sqliteRows), func() error { return k.keep(query, s) }}, nil
}

func (k keeper) Close() error {
	for query, s := range k.kept {
		delete(k.kept, query)
		s.Close()
	}
	return k.sqliteConn.Close()
}

// take takes the statement out, so that nobody else runs it while its rows are read, or makes it.
func (k keeper) take(ctx context.Context, query string) (sqliteStatement, error) {
	if s, known := k.kept[query]; known {
		delete(k.kept, query)
		return s, nil
	}
	s, err := k.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	return s.(sqliteStatement), nil
}

func (k keeper) keep(query string, s sqliteStatement) error {
	if _, another := k.kept[query]; another || len(k.kept) == maxStatements {
		return s.Close()
	}
	k.kept[query] = s
	return nil
}

// keptRows are rows of a statement that is kept when they are closed.
type keptRows struct {
	sqliteRows
	keep func() error
}

func (r *keptRows) Close() error {
	err := r.sqliteRows.Close()
	if keep := r.keep; keep != nil {
		r.keep = nil
		err = errors.Join(err, keep())
	}
	return err
}
