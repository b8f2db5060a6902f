package retention

import (
	"context"
	"errors"
	"time"

	"github.com/einmal/einmal/pkg/database"
)

const (
	// hold is about how long one transaction goes on: while it does, SQLite has no other writer, and on PostgreSQL an attempt under one
	// of its keys waits. It is a time, not a number of rows: a row may have an answer of a megabyte, or of none.
	hold = 10 * time.Millisecond

	// share is the part of the time in which it works at all; in the rest those who have waited go first.
	share = 4

	// atOnce is how many rows one statement is about: so few that it takes a part of hold.
	atOnce = 32

	// listed is how many are read at once that are due.
	listed = 512
)

// row is an operation that may be due.
type row struct {
	AccountID      string
	IdempotencyKey string
	At             time.Time // by which it is listed
}

// errElsewhere: another replica is at it.
var errElsewhere = errors.New("another replica purges")

// batch is one transaction of a purge, and the pause after it. While more says so there is time for a further statement. Replicas keep
// out of each other's way: two that removed the same rows in two orders would end each other's transactions.
func (p *Purger) batch(ctx context.Context, work func(tx database.Tx, more func() bool) error) error {
	began := time.Now()
	err := p.DB.InTx(ctx, func(tx database.Tx) error {
		var mine []int
		if err := tx.Raw("SELECT 1 WHERE ?", tx.LockCondition("retention")).Scan(&mine).Error; err != nil {
			return err
		}
		if len(mine) == 0 {
			return errElsewhere
		}
		first := time.Now() // not the wait for the writer before
		return work(tx, func() bool { return time.Since(first) < hold })
	})
	if err == nil {
		wait(ctx, (share-1)*time.Since(began))
	}
	return err
}

// chunks does a statement for each few of the rows, of one account, as long as there is time, and returns the rows that are left.
func chunks(rows []row, more func() bool, do func(account string, keys []string) error) ([]row, error) {
	for len(rows) > 0 && more() {
		account, keys := rows[0].AccountID, []string{}
		for len(rows) > 0 && len(keys) < atOnce && rows[0].AccountID == account {
			keys, rows = append(keys, rows[0].IdempotencyKey), rows[1:]
		}
		if err := do(account, keys); err != nil {
			return rows, err
		}
	}
	return rows, nil
}

// padded repeats the last key until there are as many as fit: every connection to PostgreSQL keeps each text that it has prepared, and
// one for each number of keys would be many.
func padded(keys []string) []string {
	for len(keys) < atOnce {
		keys = append(keys, keys[len(keys)-1])
	}
	return keys
}

// wait pauses, unless ctx ends first.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
