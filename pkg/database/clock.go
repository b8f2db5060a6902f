package database

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// clockEvery is how often the offset to the database's clock is measured anew. Crystals drift by some 50 µs/s at worst, so
// half a minute keeps every replica within 2 ms of the database.
const clockEvery = 30 * time.Second

// clock tells the database's time without asking it each time: an offset measured now and then, and this process's monotonic
// clock between. Leases, grace and expiry compare times of one clock, however wrong each replica's own is (docs/protocol.md rule 12).
type clock struct {
	read   func() time.Time
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// reading is what the database's clock showed at a moment of our monotonic clock.
type reading struct {
	database time.Time
	local    time.Time
}

func startClock(ctx context.Context, db *DB, injected func() time.Time) (*clock, error) {
	background, cancel := context.WithCancel(context.Background())
	c := &clock{cancel: cancel}
	switch {
	case injected != nil:
		c.read = injected
		return c, nil
	case db.kind == SQLite: // its clock is this machine's
		c.read = time.Now
		return c, nil
	}
	var latest atomic.Pointer[reading]
	first, err := readClock(ctx, db)
	if err != nil {
		cancel()
		return nil, err
	}
	latest.Store(first)
	c.read = func() time.Time {
		r := latest.Load()
		return r.database.Add(time.Since(r.local))
	}
	c.done.Go(func() {
		tick := time.NewTicker(clockEvery)
		defer tick.Stop()
		for {
			select {
			case <-background.Done():
				return
			case <-tick.C:
			}
			// A database that doesn't answer keeps the last reading: the monotonic clock goes on.
			if r, err := readClock(background, db); err == nil {
				latest.Store(r)
			}
		}
	})
	return c, nil
}

// readClock asks for the time and takes it as of the middle of the round trip. Waiting for a connection is not part of that.
func readClock(ctx context.Context, db *DB) (*reading, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := db.pool.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	var at time.Time
	before := time.Now()
	if err := conn.QueryRowContext(ctx, "SELECT clock_timestamp()").Scan(&at); err != nil {
		return nil, err
	}
	return &reading{database: at, local: before.Add(time.Since(before) / 2)}, nil
}

func (c *clock) now() time.Time { return c.read().UTC().Truncate(time.Microsecond) }

func (c *clock) stop() {
	c.cancel()
	c.done.Wait()
}
