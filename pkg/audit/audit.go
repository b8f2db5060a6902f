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
//	audit.go note.go   events are appended
//	event.go           how an event is spelled when it is hashed
//	marker.go          what is marked as not sealed yet
//	seal.go tree.go    the sealer takes that and appends it to the tree
//	segment.go         how the leaves are stored
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

// insert writes events, and markers that they are in no leaf yet.
func insert(db *gorm.DB, events []idempotency.Event) error {
	rows, written := make([]any, 0, len(events)*eventsTable.columns), make([]Event, 0, len(events))
	for i, id := range newIDs(events) {
		e := newEvent(id, events[i])
		rows = append(rows, e.Account, e.ID, e.Type, time.Time(e.At), e.Principal, e.AgentRun, e.RequestID, e.OperationID, e.AttemptID,
			e.KeyHash, e.Fingerprint, e.Route, e.EffectKey, e.Reference, e.From, e.To)
		written = append(written, e)
	}
	if err := eventsTable.insert(db, rows); err != nil {
		return fmt.Errorf("append events: %w", err)
	}
	if err := mark(db, written); err != nil {
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
