package database

import (
	"crypto/sha256"
	"encoding/binary"

	"gorm.io/gorm/clause"
)

// LockCondition is a condition for a WHERE that is true if this transaction holds, or has just got, the lock called by
// parts, and false if another open transaction has it. It never waits. Two names may share a lock (64 bits of a SHA-256), so
// it may be false without need, and it says nothing about transactions that did not ask for it: it makes a loser polite, it
// does not make anything unique.
func (tx Tx) LockCondition(parts ...string) clause.Expr {
	h := sha256.New()
	for _, part := range parts {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	return tx.open.lockCondition(int64(binary.BigEndian.Uint64(h.Sum(nil))))
}
