package database

import (
	"context"
	"time"
)

// ReadClock is tested by itself: between two readings there are thirty seconds.
func ReadClock(ctx context.Context, db *DB) (time.Time, error) {
	r, err := readClock(ctx, db)
	if err != nil {
		return time.Time{}, err
	}
	return r.database.Add(time.Since(r.local)), nil
}

// Waiting is how many transactions wait in line for SQLite's writer.
func Waiting(db *DB) int {
	db.writer.mu.Lock()
	defer db.writer.mu.Unlock()
	return len(db.writer.waiting)
}

// MaxGroup is maxGroup.
const MaxGroup = maxGroup
