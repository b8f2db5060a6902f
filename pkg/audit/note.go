package audit

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

const (
	// batchSize is how many noted events are written together: the cost of a transaction, shared by so many, is a few
	// microseconds each.
	batchSize = 512

	// batchEvery is how long a replayed event waits at most, which is what a crash may lose.
	batchEvery = 100 * time.Millisecond

	// backlog is how many noted events may wait. Beyond it a Note waits for the writer: slower, never unrecorded.
	backlog = 8 * batchSize

	// patience is how long an answer waits for its event. A commit takes milliseconds. But SQLite's only writer may be the very
	// operation that an attempt is told is in progress: the answer must not wait for that one to end.
	patience = 250 * time.Millisecond

	// writeTimeout bounds the writing of a batch. It is longer than any transaction of ours lasts, so that one that holds
	// SQLite's only writer costs no event.
	writeTimeout = 30 * time.Second
)

// noted is an event on its way to the writer.
type noted struct {
	event   idempotency.Event
	written chan struct{} // closed when it is; nil if nobody waits for it
}

// Note appends the event of an attempt that committed nothing. One writer writes all that is there in one transaction, so that
// any number of duplicates being told to wait costs one connection. A failure is logged, since the attempt has its answer anyway.
func (l *Log) Note(ctx context.Context, event idempotency.Event) {
	if event.At.IsZero() { // whoever tells it has no clock of the database
		event.At = l.db.Now()
	}
	n := noted{event: event}
	if event.Type != idempotency.Replayed {
		n.written = make(chan struct{})
	}
	switch sent := l.send(n); {
	case !sent:
		l.write([]idempotency.Event{event})
	case n.written != nil:
		patient := time.NewTimer(patience)
		defer patient.Stop()
		select {
		case <-n.written:
		case <-patient.C:
		case <-ctx.Done(): // nobody listens any more
		}
	}
}

// send reports whether the writer will get n; it does not when the log is closed.
func (l *Log) send(n noted) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if !l.closed {
		l.notes <- n
	}
	return !l.closed
}

func (l *Log) writeNotes() {
	tick := time.NewTicker(batchEvery)
	defer tick.Stop()
	var batch []idempotency.Event
	var waiting []chan struct{}
	flush := func() {
		if len(batch) > 0 {
			l.write(batch)
		}
		for _, written := range waiting {
			close(written)
		}
		batch, waiting = batch[:0], waiting[:0]
	}
	defer flush()
	for {
		select {
		case n, open := <-l.notes:
			if !open {
				return
			}
			batch = append(batch, n.event)
			if n.written != nil {
				waiting = append(waiting, n.written)
			}
			if len(batch) == batchSize || len(waiting) > 0 && len(l.notes) == 0 {
				flush()
			}
		case <-tick.C:
			flush()
		}
	}
}

func (l *Log) write(events []idempotency.Event) {
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	insertAll := func(tx database.Tx) error { return insert(tx.AtCommit(), events) }
	err := l.db.InTx(ctx, insertAll)
	for errors.Is(err, database.ErrBusy) && ctx.Err() == nil { // another process holds a lock; each try waits for it
		err = l.db.InTx(ctx, insertAll)
	}
	if err != nil {
		slog.Error("events not written", slog.Int("count", len(events)), slog.String("type", string(events[0].Type)), slog.Any("error", err))
	}
}
