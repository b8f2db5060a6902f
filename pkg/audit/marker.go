package audit

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"golang.org/x/mod/sumdb/tlog"
	"gorm.io/gorm"

	"github.com/einmal/einmal/pkg/database"
)

const (
	// markedTogether is how many events share a marker at most. A transaction of a request writes two or three.
	markedTogether = 16

	// sealBatch is how many markers are taken in one transaction: more share the cost of a signature, a commit and a file, and on SQLite others
	// wait for it, some ten milliseconds.
	sealBatch = 1024
)

// leaf is an event on its way into the tree.
type leaf struct {
	account, id string
	hash        tlog.Hash
}

// mark writes that events are in no leaf yet, and what their leaves will be.
func mark(db *gorm.DB, events []Event) error {
	var rows []any
	for together := range slices.Chunk(events, markedTogether) {
		marked := make([][]string, len(together))
		for i, e := range together {
			marked[i] = []string{e.Account, e.ID, e.leafHash().String()}
		}
		text, err := json.Marshal(marked)
		if err != nil {
			return err
		}
		rows = append(rows, string(text))
	}
	return markersTable.insert(db, rows)
}

// takeMarked takes the oldest markers away. It returns what they mark, in the order of ids, and whether there may be more of them.
func takeMarked(tx database.Tx) (leaves []leaf, more bool, err error) {
	// By a range, of which both ends are said: for a list, or one end, PostgreSQL looks at every marker, and for a list at each once for every other, when it takes the
	// table for an empty one, as it is most of the time.
	var texts []string
	err = tx.Raw(`DELETE FROM markers WHERE id >= (SELECT min(id) FROM markers)
		AND id <= (SELECT max(id) FROM (SELECT id FROM markers ORDER BY id LIMIT ?) oldest) RETURNING events`, sealBatch).Scan(&texts).Error
	if err != nil {
		return nil, false, fmt.Errorf("take markers: %w", err)
	}
	for _, text := range texts {
		if leaves, err = appendMarked(tx, leaves, text); err != nil {
			return nil, false, fmt.Errorf("a marker says %q: %w", text, err)
		}
	}
	slices.SortFunc(leaves, func(a, b leaf) int { return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.account, b.account)) })
	return leaves, len(texts) >= sealBatch, nil
}

// errForged means that a marker is none that a service has written. It stays, so that einmal audit verify names it.
var errForged = errors.New("no service has written that, and nothing is sealed as long as it is there")

// appendMarked appends what one marker marks.
func appendMarked(tx database.Tx, leaves []leaf, text string) ([]leaf, error) {
	var marked [][]string
	if err := json.Unmarshal([]byte(text), &marked); err != nil || len(marked) == 0 {
		return nil, errors.Join(errForged, err)
	}
	for _, m := range marked {
		var l leaf
		var err error
		switch {
		case len(m) < 2:
			err = errForged
		case len(m) == 2: // from the time before markers had hashes
			l, err = leafOf(tx, m[0], m[1])
		default:
			l = leaf{account: m[0], id: m[1]}
			if l.hash, err = tlog.ParseHash(m[2]); err != nil {
				err = errForged
			}
		}
		if err != nil {
			return nil, err
		}
		leaves = append(leaves, l)
	}
	return leaves, nil
}

// leafOf is the leaf of an event as it is now. One that is gone gets a leaf that no event has, so that it stays missed.
func leafOf(tx database.Tx, account, id string) (leaf, error) {
	l := leaf{account: account, id: id}
	events, err := readEvents(tx.DB, "WHERE e.account_id = ? AND e.id = ?", account, id)
	if len(events) == 1 {
		l.hash = events[0].leafHash()
	}
	return l, err
}
