package audit

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"golang.org/x/mod/sumdb/tlog"
	"gorm.io/gorm"
)

// segment is a row of segments: leaves that follow each other, whose events' ids begin alike.
type segment struct {
	first  int64      // index of the first leaf
	names  [][]string // account and id of each leaf's event, in the order of ids
	hashes []byte     // those that the leaves complete, as tlog orders what it stores
}

// beginning is what the ids of all events of a segment have in common: the prefix and as much of a UUIDv7's time as is the same for 65 s. So whoever
// looks for an event need look at the segments of its minute only, however late it was committed.
func beginning(id string) string { return id[:min(len(id), len("evt_01234567"))] }

// cut makes segments of leaves in the order of their ids, and appends them to a tree.
func cut(leaves []leaf, tree *frontier) (segments []segment) {
	for i, l := range leaves {
		if i == 0 || beginning(l.id) != beginning(leaves[i-1].id) {
			segments = append(segments, segment{first: tree.size})
		}
		s := &segments[len(segments)-1]
		s.names = append(s.names, []string{l.account, l.id})
		for _, h := range tree.push(l.hash) {
			s.hashes = append(s.hashes, h[:]...)
		}
	}
	return segments
}

// row are the values of its columns.
func (s segment) row() ([]any, error) {
	text, err := json.Marshal(s.names)
	return []any{s.first, tlog.StoredHashCount(s.first), string(text), s.hashes}, err
}

// isNew makes sure that no event of a new segment has a leaf already, or two.
func (s segment) isNew(db *gorm.DB) error {
	sealed, err := sealedAmong(db, s.names[0][1], s.names[len(s.names)-1][1])
	if err != nil {
		return err
	}
	for _, n := range s.names {
		of := name{n[0], n[1]}
		if _, twice := sealed[of]; twice {
			return fmt.Errorf("event %s is marked to be sealed twice: %w", of.id, errForged)
		}
		sealed[of] = 0
	}
	return nil
}

// name is what an event is called.
type name struct{ account, id string }

// sealedAmong reads the leaves of events whose ids begin alike and are from one to another.
func sealedAmong(db *gorm.DB, from, to string) (map[name]int64, error) {
	rows, err := db.Raw(`SELECT coalesce(account_id, ''), event_id, leaf_index FROM leaves
		WHERE first_event >= ? AND first_event <= ? AND last_event >= ? AND event_id >= ? AND event_id <= ?`, beginning(from), to, from, from, to).Rows()
	if err != nil {
		return nil, fmt.Errorf("read leaves: %w", err)
	}
	defer rows.Close()
	sealed := map[name]int64{}
	for rows.Next() {
		var of name
		var index int64
		if err := rows.Scan(&of.account, &of.id, &index); err != nil {
			return nil, fmt.Errorf("read leaves: %w", err)
		}
		sealed[of] = index
	}
	return sealed, rows.Err()
}
