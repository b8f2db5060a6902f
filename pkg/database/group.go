package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// maxGroup bounds how long the first of a group waits for the last: a transaction takes about a millisecond.
const maxGroup = 32

// writer is SQLite's single writer. Transactions that want it wait in line, one line per process, and those that have waited
// share one transaction of SQLite, a group: each of those costs a flush of the disk however much it holds.
//
// Each is a member, which works alone, in its turn, behind a savepoint of its own: one that fails takes back its own statements
// and nobody else's. It may have seen what the members before it wrote, which is not durable yet. So nobody is told anything, not
// even of a failure, before the group has ended.
type writer struct {
	pool *sql.DB

	mu      sync.Mutex
	busy    bool
	waiting []chan *group // each is sent the group to go on with when its turn comes; nil: none, begin another
}

// group is one transaction of SQLite.
type group struct {
	*sql.Tx
	conn    *sql.Conn
	end     context.CancelFunc
	members int
	keep    bool          // a member has succeeded
	lost    error         // by which SQLite has taken back the whole
	ended   chan struct{} // closed when err is known
	err     error
}

// member is one of InTx in a group.
type member struct {
	*group
	writer *writer
}

// errGroupLost: a statement of another member was interrupted while it wrote, or met a full or broken disk, upon which SQLite takes
// back the whole transaction. Nothing of it is left, and it may be tried again.
var errGroupLost = errors.New("taken back together with a transaction that failed")

// join waits for its turn until ctx ends, and begins a transaction: in the group of whoever had the turn before, or in a new one.
func (w *writer) join(ctx context.Context) (transaction, error) {
	g, err := w.turn(ctx)
	if err != nil {
		return nil, err
	}
	if g == nil {
		if g, err = w.begin(ctx); err != nil {
			w.pass(nil)
			return nil, err
		}
	} else if _, err := g.ExecContext(context.WithoutCancel(ctx), "SAVEPOINT member"); err != nil {
		g.lost = err
		return nil, (&member{g, w}).leave()
	}
	g.members++
	return &member{g, w}, nil
}

// turn waits in line.
func (w *writer) turn(ctx context.Context) (*group, error) {
	w.mu.Lock()
	if !w.busy {
		w.busy = true
		w.mu.Unlock()
		return nil, nil
	}
	mine := make(chan *group, 1)
	w.waiting = append(w.waiting, mine)
	w.mu.Unlock()
	select {
	case g := <-mine:
		return g, nil
	case <-ctx.Done():
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.Index(w.waiting, mine); i >= 0 {
		w.waiting = slices.Delete(w.waiting, i, i+1)
		return nil, ctx.Err()
	}
	return <-mine, nil // it came at that moment. Somebody must go on with the group; the first statement will find ctx at its end
}

// pass gives the turn to the next in line, with the group to go on with, and reports whether there was one. If not, whoever has a
// group keeps the turn, and without one the writer is free.
func (w *writer) pass(g *group) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) == 0 {
		w.busy = g != nil
		return false
	}
	w.waiting[0] <- g
	w.waiting = w.waiting[1:]
	return true
}

// begin waits for the write lock until ctx ends. The transaction itself goes on beyond that: database/sql would roll back in the
// middle of a COMMIT. Its statements carry contexts themselves.
func (w *writer) begin(ctx context.Context) (*group, error) {
	conn, err := w.pool.Conn(ctx)
	if err != nil {
		return nil, err
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, end)
	tx, err := conn.BeginTx(life, nil)
	if inTime := stop(); err == nil && !inTime { // ctx has ended meanwhile, and life with it
		_ = tx.Rollback()
		err = ctx.Err()
	}
	if err != nil {
		end()
		conn.Close()
		return nil, err
	}
	return &group{Tx: tx, conn: conn, end: end, ended: make(chan struct{})}, nil
}

// commit keeps what the member wrote, if its group commits.
func (m *member) commit(ctx context.Context) error {
	if m.savepoint() {
		if _, err := m.ExecContext(ctx, "RELEASE member"); err != nil {
			m.lost = err
		}
	}
	m.keep = true
	return m.leave()
}

// rollback takes back what the member wrote.
func (m *member) rollback(ctx context.Context) error {
	if m.savepoint() {
		_, err := m.ExecContext(ctx, "ROLLBACK TO member")
		if err == nil {
			_, err = m.ExecContext(ctx, "RELEASE member")
		}
		if err != nil { // there is no savepoint any more, nor a transaction
			m.lost = err
		}
	}
	return m.leave()
}

// savepoint reports whether the member has one. The first has none: if it fails, there is nothing to go on with.
func (m *member) savepoint() bool { return m.members > 1 }

// leave gives the turn to the next, who goes on with the group, or ends the group. It returns how that has ended.
func (m *member) leave() error {
	g := m.group
	if g.keep && g.lost == nil && g.members < maxGroup && m.writer.pass(g) {
		<-g.ended
		return g.err
	}
	switch {
	case g.lost != nil:
		_ = g.Rollback() // it is gone; this tells database/sql
		g.err = fmt.Errorf("%w: %w: %w", ErrBusy, errGroupLost, g.lost)
	case g.keep:
		g.err = commitError(g.Commit())
	default:
		_ = g.Rollback()
	}
	g.end()
	g.conn.Close()
	close(g.ended)
	m.writer.pass(nil)
	return g.err
}

func (m *member) queue() gorm.ConnPool { return m.Tx } // in one process there is no round trip to save

func (m *member) release() {} // the group has the connection

// lockCondition is always true here: whoever is inside a transaction is the only writer.
func (m *member) lockCondition(int64) clause.Expr { return clause.Expr{SQL: "true"} }
