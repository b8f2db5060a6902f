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
