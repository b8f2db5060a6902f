package audit

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/mod/sumdb/tlog"
	"gorm.io/gorm"

	"github.com/einmal/einmal/pkg/database"
)

// Entry is one line of a log that is read as a whole, from the database or from an exported file. There are, in this order, one Log, all Checkpoints,
// all Leaves, what is in no leaf, and one End. Each has one of these members.
type Entry struct {
	Log        *LogEntry        `json:"log,omitzero"`
	Checkpoint *CheckpointEntry `json:"checkpoint,omitzero"`
	Leaf       *LeafEntry       `json:"leaf,omitzero"`
	Loose      *LooseEntry      `json:"loose,omitzero"`
	End        *EndEntry        `json:"end,omitzero"`
}

// The parts of a log, in their order.
const (
	nowhere = iota // it has none of the members, or several
	inLog
	inCheckpoints
	inLeaves
	inLoose
	inEnd
)

// part is the one that an entry belongs to.
func (e Entry) part() (part int) {
	for i, is := range []bool{e.Log != nil, e.Checkpoint != nil, e.Leaf != nil, e.Loose != nil, e.End != nil} {
		switch {
		case is && part != nowhere:
			return nowhere
		case is:
			part = inLog + i
		}
	}
	return part
}

// follows reports whether an entry may come after one of a part: the first is the log, of which there is one, as of the end.
func (e Entry) follows(before int) bool {
	part := e.part()
	return part == inLog && before == nowhere || part > inLog && before > nowhere && (part > before || part == before && part != inEnd)
}

// LogEntry says which log it is and how large it says it is.
type LogEntry struct {
	Format      int    `json:"format"`
	Origin      string `json:"origin"`
	Size        int64  `json:"size"`
	Checkpoints int64  `json:"checkpoints"`
}

// isOf reports whether it is the log of a service, by what Origin says; empty: of any.
func (l LogEntry) isOf(service string) bool {
	return service == "" || strings.HasPrefix(l.Origin, origin(service, ""))
}

// format is that of an exported file. A release reads those of all before it.
const format = 1

// CheckpointEntry is a row of audit_checkpoints.
type CheckpointEntry struct {
	Number int64  `json:"number"`
	Note   string `json:"note"`
}

// LeafEntry is a leaf with its event, if that is there.
type LeafEntry struct {
	Index   int64  `json:"index"`
	Account string `json:"account"`
	EventID string `json:"event_id"`
	Hashes  []byte `json:"hashes"`
	Event   *Event `json:"event,omitzero"`
}

// LooseEntry is an event without a leaf, a marker without an event, an event with its marker, which is to be sealed, or a marker of an event that is
// sealed.
type LooseEntry struct {
	Account string `json:"account"`
	EventID string `json:"event_id"`
	Event   *Event `json:"event,omitzero"`
	Marked  bool   `json:"marked"`
	Sealed  bool   `json:"sealed,omitzero"`
}

// EndEntry is the last one: a file without it was cut.
type EndEntry struct{}

// Read reads the log of a service from its database, in one snapshot.
func Read(ctx context.Context, db *database.DB, service string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		err := db.Snapshot(ctx, func(read *gorm.DB) error {
			for _, part := range []func(*gorm.DB, func(Entry) error) error{logOf(service), checkpoints, leaves, loose} {
				err := part(read, func(e Entry) error {
					if !yield(e, nil) {
						return errEnough
					}
					return nil
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
		switch {
		case errors.Is(err, errEnough):
		case err != nil:
			yield(Entry{}, fmt.Errorf("read the log: %w", err))
		default:
			yield(Entry{End: &EndEntry{}}, nil)
		}
	}
}

// errEnough ends a reading of which nobody wants the rest.
var errEnough = errors.New("enough")

func logOf(service string) func(*gorm.DB, func(Entry) error) error {
	return func(read *gorm.DB, tell func(Entry) error) error {
		origin, err := Origin(read, service)
		if err != nil {
			return err
		}
		t, err := readTree(read)
		if err != nil {
			return err
		}
		return tell(Entry{Log: &LogEntry{format, origin, t.Size, t.Checkpoints}})
	}
}

func checkpoints(read *gorm.DB, tell func(Entry) error) error {
	return each(read, "SELECT number, note FROM audit_checkpoints ORDER BY number", tell, func(scan func(...any) error) (Entry, error) {
		var c CheckpointEntry
		return Entry{Checkpoint: &c}, scan(&c.Number, &c.Note)
	})
}

func leaves(read *gorm.DB, tell func(Entry) error) error {
	var first, stored int64 // of the segment that the last leaf was in
	var hashes []byte       // of that
	return each(read, `SELECT l.leaf_index, coalesce(l.account_id, ''), coalesce(l.event_id, ''), l.first_index, s.first_hash,
		CASE l.leaf_index WHEN l.first_index THEN s.hashes END, `+optionalColumns+`
		FROM leaves l JOIN segments s ON s.first_index = l.first_index
		LEFT JOIN events e ON e.account_id = l.account_id AND e.id = l.event_id ORDER BY l.first_index, l.leaf_index`, tell,
		func(scan func(...any) error) (Entry, error) {
			var l LeafEntry
			var e optionalEvent
			var row []byte
			err := scan(append([]any{&l.Index, &l.Account, &l.EventID, &first, &stored, &row}, e.fields()...)...)
			if l.Index == first {
				hashes = row
			}
			l.Hashes = completed(hashes, stored, l.Index)
			l.Event = e.event()
			return Entry{Leaf: &l}, err
		})
}

// completed are the hashes that a leaf completes, of those that are stored from one on.
func completed(hashes []byte, from, leaf int64) []byte {
	begin := (tlog.StoredHashCount(leaf) - from) * tlog.HashSize
	end := (tlog.StoredHashCount(leaf+1) - from) * tlog.HashSize
	if begin < 0 || begin > end || end > int64(len(hashes)) {
		return []byte{}
	}
	return hashes[begin:end]
}

func loose(read *gorm.DB, tell func(Entry) error) error {
	tellLoose := func(scan func(...any) error) (Entry, error) {
		var l LooseEntry
		var e optionalEvent
		var hash string
		err := scan(append([]any{&l.Account, &l.EventID, &l.Marked, &hash, &l.Sealed}, e.fields()...)...)
		l.Event = e.event()
		if l.Event != nil && hash != "" && hash != l.Event.leafHash().String() { // it is another that was marked
			l.Marked = false
		}
		return Entry{Loose: &l}, err
	}
	err := each(read, `SELECT e.account_id, e.id, u.marker IS NOT NULL, coalesce(u.hash, ''), false, `+optionalColumns+` FROM events e
		LEFT JOIN leaves l ON l.account_id = e.account_id AND l.event_id = e.id
		LEFT JOIN unsealed u ON u.account_id = e.account_id AND u.event_id = e.id
		WHERE l.leaf_index IS NULL ORDER BY e.id, e.account_id`, tell, tellLoose)
	if err != nil {
		return err
	}
	return each(read, `SELECT coalesce(u.account_id, ''), coalesce(u.event_id, ''), true, coalesce(u.hash, ''), l.leaf_index IS NOT NULL, `+optionalColumns+` FROM unsealed u
		LEFT JOIN events e ON e.account_id = u.account_id AND e.id = u.event_id
		LEFT JOIN leaves l ON l.account_id = u.account_id AND l.event_id = u.event_id
		WHERE e.id IS NULL OR l.leaf_index IS NOT NULL ORDER BY u.event_id, u.account_id`, tell, tellLoose)
}

// each tells an entry for every row of a query.
func each(read *gorm.DB, query string, tell func(Entry) error, entry func(scan func(...any) error) (Entry, error)) error {
	rows, err := read.Raw(query).Rows()
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		e, err := entry(rows.Scan)
		if err != nil {
			return err
		}
		if err := tell(e); err != nil {
			return err
		}
	}
	return rows.Err()
}

// optionalColumns are eventColumns of an event that may not be there.
const optionalColumns = `coalesce(e.id, ''), coalesce(e.account_id, ''), coalesce(e.type, ''), e.at, coalesce(e.principal, ''), coalesce(e.agent_run, ''),
	coalesce(e.request_id, ''), coalesce(e.operation_id, ''), coalesce(e.attempt_id, ''), coalesce(e.key_hash, ''), coalesce(e.fingerprint, ''),
	coalesce(e.route, ''), coalesce(e.effect_key, ''), coalesce(e.reference, ''), coalesce(e.from_state, ''), coalesce(e.to_state, '')`

// optionalEvent is an event that may not be there.
type optionalEvent struct {
	of Event
	at sql.Null[time.Time]
}

func (o *optionalEvent) fields() []any {
	fields := o.of.fields()
	fields[3] = &o.at // the one that coalesce has no empty value for
	return fields
}

func (o *optionalEvent) event() *Event {
	if o.of.ID == "" {
		return nil
	}
	o.of.At = Time(o.at.V)
	return &o.of
}

// Write writes a log as lines of JSON.
func Write(to io.Writer, log iter.Seq2[Entry, error]) error {
	buffered := bufio.NewWriter(to)
	for entry, err := range log {
		if err != nil {
			return err
		}
		// What is no UTF-8 is spelled as in its leaf. A database of a release that has kept such a thing must be told all the same.
		line, err := json.Marshal(entry, jsontext.AllowInvalidUTF8(true))
		if err != nil {
			return fmt.Errorf("export the log: %w", err)
		}
		if _, err := buffered.Write(append(line, '\n')); err != nil {
			return fmt.Errorf("export the log: %w", err)
		}
	}
	return buffered.Flush()
}

// maxLine bounds a line of an exported file. An event has some kilobytes at most.
const maxLine = 1 << 20

// ReadFile reads what Write has written.
func ReadFile(from io.Reader) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		lines := bufio.NewScanner(from)
		lines.Buffer(nil, maxLine)
		for n := 1; lines.Scan(); n++ {
			var e Entry
			err := json.Unmarshal(lines.Bytes(), &e, json.RejectUnknownMembers(true))
			switch {
			case err != nil:
				err = fmt.Errorf("line %d is not one of an exported log: %w", n, err)
			case e.Log != nil && e.Log.Format != format:
				err = fmt.Errorf("line %d: the file is of format %d, and this release reads %d", n, e.Log.Format, format)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(Entry{}, fmt.Errorf("read the exported log: %w", err))
		}
	}
}
