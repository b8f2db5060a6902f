package retention

import (
	"context"
	"errors"
	"time"

	"github.com/einmal/einmal/pkg/database"
)

const (
	// hold is after how long a transaction begins no further statement: while it goes on, SQLite has no other writer, and on PostgreSQL an attempt under
	// one of its keys waits. It is a time, not a number of rows: a row may have an answer of a megabyte, or of none. With 5 ms the p99 of creations
	// beside a purge was 1.8 times as long on SQLite, with this 1.3, and as many keys were purged (bench, variant purge).
	hold = time.Millisecond

	// rest is how many times as long nothing is done after that: those who have waited go first.
	rest = 7

	// atOnce is how many rows one statement is about: so few that it takes a millisecond or two.
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
	var held time.Duration // not the wait for the writer before, nor for a commit that others share
	err := p.DB.InTx(ctx, func(tx database.Tx) error {
		var mine []int
		if err := tx.Raw("SELECT 1 WHERE ?", tx.LockCondition("retention")).Scan(&mine).Error; err != nil {
			return err
		}
		if len(mine) == 0 {
			return errElsewhere
		}
		began := time.Now()
		err := work(tx, func() bool { return time.Since(began) < hold })
		held = time.Since(began)
		return err
	})
	if err == nil {
		wait(ctx, rest*held)
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
