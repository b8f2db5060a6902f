package audit

import (
	"database/sql"
	"errors"
	"fmt"
	"math/bits"

	"golang.org/x/mod/sumdb/tlog"
	"gorm.io/gorm"
)

// frontier is a Merkle tree that can only grow: of every size its root can be told, of its inside only the right edge is kept.
type frontier struct {
	size int64
	edge [63]tlog.Hash // by level: the complete subtree that the size has a bit for
}

// push appends a leaf and returns the hashes that it completes, its own first.
func (f *frontier) push(leaf tlog.Hash) []tlog.Hash {
	completed := []tlog.Hash{leaf}
	level := 0
	for ; f.size>>level&1 == 1; level++ {
		leaf = tlog.NodeHash(f.edge[level], leaf)
		completed = append(completed, leaf)
	}
	f.edge[level] = leaf
	f.size++
	return completed
}

// root is that of the tree as it is now.
func (f *frontier) root() tlog.Hash {
	if f.size == 0 {
		root, _ := tlog.TreeHash(0, nil) // the hash of nothing; it reads nothing
		return root
	}
	level := bits.TrailingZeros64(uint64(f.size))
	root := f.edge[level]
	for level++; f.size>>level > 0; level++ {
		if f.size>>level&1 == 1 {
			root = tlog.NodeHash(f.edge[level], root)
		}
	}
	return root
}

// readFrontier reads the right edge of a tree of that size.
func readFrontier(db *gorm.DB, size int64) (frontier, error) {
	f := frontier{size: size}
	var levels []int
	var indexes []int64
	for level := range f.edge {
		if size>>level&1 == 1 {
			levels = append(levels, level)
			indexes = append(indexes, tlog.StoredHashIndex(level, size>>level-1))
		}
	}
	hashes, err := storedHashes{db}.ReadHashes(indexes)
	if err != nil {
		return f, err
	}
	for i, level := range levels {
		f.edge[level] = hashes[i]
	}
	return f, nil
}

// storedHashes reads hashes of the tree from segments, by the index that tlog has for each.
type storedHashes struct{ db *gorm.DB }

// errNoHash means that the tree lacks what it must have: a leaf was removed, or something else was put in its place.
var errNoHash = errors.New("the tree lacks a hash; einmal audit verify says since when")

// ReadHashes is tlog.HashReader.
func (s storedHashes) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	hashes := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		var row []byte
		err := s.db.Raw("SELECT substr(hashes, CAST(1 + 32 * (? - first_hash) AS integer), 32) FROM segments WHERE first_hash <= ? ORDER BY first_hash DESC LIMIT 1", index, index).
			Row().Scan(&row)
		switch {
		case errors.Is(err, sql.ErrNoRows), err == nil && len(row) != tlog.HashSize:
			return nil, fmt.Errorf("read the tree: %w", errNoHash)
		case err != nil:
			return nil, fmt.Errorf("read the tree: %w", err)
		}
		copy(hashes[i][:], row)
	}
	return hashes, nil
}

// tree is the row of audit_tree, and whether there is more to append to it.
type tree struct {
	Size, Checkpoints int64
	waiting           bool
}

func readTree(db *gorm.DB) (t tree, err error) {
	query := "SELECT size, checkpoints, (SELECT max(id) FROM markers) IS NOT NULL FROM audit_tree WHERE id = 1"
	if err := db.Raw(query).Row().Scan(&t.Size, &t.Checkpoints, &t.waiting); err != nil {
		return t, fmt.Errorf("read the size of the tree: %w", err)
	}
	return t, nil
}
