// Package audit appends what happened to operations to the table events, and proves that nothing was done to it afterwards.
//
// An event is written in the transaction of what it tells ([Log.Record]). Events of attempts that committed nothing are written
// afterwards ([Log.Note]): those that tell of a no, or of a not yet, before the caller hears it, unless the database is busy;
// those of replays, which change nothing and may be many, soon after, and a crash may lose the last of them (docs/protocol.md rule 13).
// There are no bodies and no secrets in events, and keys are hashed.
//
// Committed events become leaves of a Merkle tree (RFC 6962, as golang.org/x/mod/sumdb/tlog has it), and each batch of them ends in a signed
// checkpoint, which is in the database and in a file outside it. docs/audit.md says what that proves and what it does not. In the order of an event's life:
//
//	audit.go note.go   events are appended, each with a marker that it is not sealed
//	event.go           how an event is spelled when it is hashed
//	seal.go tree.go    the sealer takes what is marked and appends it to the tree
//	checkpoint.go      what is signed
//	key.go files.go    what is outside the database: the key, whose checkpoints are believed, the last checkpoint
//	guard.go           a database that is older than that checkpoint takes no writes
//	export.go          the log as lines, read from the database or a file
//	verify.go          what is wrong with it
//	receipt.go         the proof of one operation
package audit

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"gorm.io/gorm"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

// Log appends events. Its Record and Note are the hooks of idempotency.Options.
type Log struct {
	db    *database.DB
	notes chan noted
	done  sync.WaitGroup

	mu     sync.RWMutex // read-locked by whoever sends a note, so that notes is closed when nobody does
	closed bool
}

// Open starts the writer of notes. Close it before the database.
func Open(db *database.DB) *Log {
	l := &Log{db: db, notes: make(chan noted, backlog)}
	l.done.Go(l.writeNotes)
	return l
}

// Record appends events in tx.
func (l *Log) Record(tx database.Tx, events ...idempotency.Event) error {
	return insert(tx.AtCommit(), events)
}

// Close writes what is waiting. A Note that comes later, from an attempt that outlived the shutdown's patience, writes for
// itself.
func (l *Log) Close() {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.notes)
	}
	l.mu.Unlock()
	l.done.Wait()
}

// row is one row of events. The state columns have names of their own because "from" and "to" are words of SQL.
type row struct {
	AccountID, ID, Type                                    string
	At                                                     time.Time
	Principal, AgentRun, RequestID, OperationID, AttemptID string
	KeyHash, Fingerprint, Route, EffectKey, Reference      string
	FromState, ToState                                     string
}

// marker says that an event is in no leaf yet.
type marker struct{ AccountID, EventID string }

// insert writes a number of events as a few statements of 1, 2, 4 … rows, so that there are few texts of them: every connection
// to PostgreSQL keeps each text that it has prepared, and one for each number of events came to hundreds of megabytes.
func insert(db *gorm.DB, events []idempotency.Event) error {
	rows, markers, ids := make([]row, len(events)), make([]marker, len(events)), newIDs(events)
	for i, e := range events {
		rows[i] = row{
			AccountID: e.Account, ID: ids[i], Type: string(e.Type), At: e.At,
			Principal: e.Principal, AgentRun: e.AgentRun, RequestID: e.RequestID, OperationID: e.OperationID, AttemptID: e.AttemptID,
			KeyHash: e.KeyHash, Fingerprint: string(e.Fingerprint), Route: e.Route,
			EffectKey: e.EffectKey, Reference: e.Reference,
			FromState: string(e.From), ToState: string(e.To),
		}
		markers[i] = marker{e.Account, rows[i].ID}
	}
	if err := inPieces(db, "events", rows); err != nil {
		return fmt.Errorf("append events: %w", err)
	}
	if err := inPieces(db, "unsealed", markers); err != nil {
		return fmt.Errorf("mark events as not sealed: %w", err)
	}
	return nil
}

// newIDs makes an id for each event. Of one time, those that are told together keep their order.
func newIDs(events []idempotency.Event) []string {
	ids, run := make([]string, len(events)), 0
	for i, e := range events {
		ids[i] = idempotency.NewID("evt", e.At)
		if i+1 == len(events) || !events[i+1].At.Equal(e.At) {
			slices.Sort(ids[run : i+1])
			run = i + 1
		}
	}
	return ids
}

// inPieces inserts rows in statements of 1, 2, 4 … of them.
func inPieces[R any](db *gorm.DB, table string, rows []R) error {
	for size := largestStatement; size > 0; size /= 2 {
		for ; len(rows) >= size; rows = rows[size:] {
			if err := db.Table(table).Create(rows[:size]).Error; err != nil {
				return err
			}
		}
	}
	return nil
}

// largestStatement is a power of two. With 16 columns it stays far below the databases' limits on parameters, and half as
// many rows in one statement are not measurably slower.
const largestStatement = 256
