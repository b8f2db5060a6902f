package audit

import (
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
func readFrontier(db *gorm.DB, size int64) (*frontier, error) {
	f := &frontier{size: size}
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
		return nil, err
	}
	for i, level := range levels {
		f.edge[level] = hashes[i]
	}
	return f, nil
}

// storedHashes reads hashes of the tree from leaves, by the index that tlog has for each.
type storedHashes struct{ db *gorm.DB }

// errNoHash means that the tree lacks what it must have: a leaf was removed, or something else was put in its place.
var errNoHash = errors.New("the tree lacks a hash; einmal audit verify says since when")

// ReadHashes is tlog.HashReader.
func (s storedHashes) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	if len(indexes) == 0 {
		return nil, nil
	}
	completedBy := make([]int64, len(indexes)) // the leaf whose row has the hash
	for i, index := range indexes {
		level, n := tlog.SplitStoredHashIndex(index)
		completedBy[i] = (n+1)<<level - 1
	}
	var rows []struct {
		LeafIndex int64
		Hashes    []byte
	}
	if err := s.db.Table("leaves").Select("leaf_index, hashes").Where("leaf_index IN ?", completedBy).Find(&rows).Error; err != nil {
		return nil, fmt.Errorf("read the tree: %w", err)
	}
	stored := map[int64][]byte{}
	for _, row := range rows {
		stored[row.LeafIndex] = row.Hashes
	}
	hashes := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		level, _ := tlog.SplitStoredHashIndex(index)
		row := stored[completedBy[i]]
		if len(row) < (level+1)*tlog.HashSize {
			return nil, fmt.Errorf("read the tree: %w", errNoHash)
		}
		copy(hashes[i][:], row[level*tlog.HashSize:])
	}
	return hashes, nil
}

// tree is the row of audit_tree.
type tree struct{ Size, Checkpoints int64 }

func readTree(db *gorm.DB) (t tree, err error) {
	if err := db.Raw("SELECT size, checkpoints FROM audit_tree WHERE id = 1").Row().Scan(&t.Size, &t.Checkpoints); err != nil {
		return t, fmt.Errorf("read the size of the tree: %w", err)
	}
	return t, nil
}
