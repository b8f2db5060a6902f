package retention

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/einmal/einmal/pkg/database"
)

// ended are the states in which an operation has its final answer. No other is ever touched.
const ended = "('succeeded', 'failed', 'canceled')"

const (
	// listAnswers reads what is due, by operations_to_expire.
	listAnswers = `SELECT account_id, idempotency_key, created_at AS at FROM operations
		WHERE response_expired_at IS NULL AND created_at < ? AND (created_at, account_id, idempotency_key) > (?, ?, ?)
		AND completed_at < ? AND state IN ` + ended + `
		ORDER BY created_at, account_id, idempotency_key LIMIT ?`

	// dropAnswers goes by the primary key. The CASE says what is in operations_to_expire so that PostgreSQL does not see it: without
	// statistics, as after a restore, it takes a part of the table for a small one and would read all of the account's operations
	// there (measured: 2.2 s a statement among 500 000).
	dropAnswers = `UPDATE operations SET response_body = NULL, response_expired_at = ?
		WHERE account_id = ? AND idempotency_key IN ? AND CASE WHEN response_expired_at IS NULL THEN true ELSE false END
		AND completed_at < ? AND state IN ` + ended
)

// expire drops the answers that are past their retention.
func (p *Purger) expire(ctx context.Context) (int64, error) {
	until := p.DB.Now().Add(-p.Response)
	list := func(read *gorm.DB, after row) *gorm.DB {
		return read.Raw(listAnswers, until, after.At, after.AccountID, after.IdempotencyKey, until, listed)
	}
	return p.sweep(ctx, list, func(tx database.Tx, account string, keys []string) (int64, error) {
		update := tx.Exec(dropAnswers, tx.Now, account, padded(keys), until)
		return update.RowsAffected, update.Error
	})
}

// sweep lists what is due, from the oldest on, and does it in batches until nothing is left. What a statement leaves where it is stays
// for the next round.
func (p *Purger) sweep(ctx context.Context, list func(read *gorm.DB, after row) *gorm.DB, do func(tx database.Tx, account string, keys []string) (int64, error)) (all int64, err error) {
	var last row
	for ctx.Err() == nil {
		var due []row
		if err := list(p.DB.Read(ctx), last).Scan(&due).Error; err != nil {
			return all, database.Classify(fmt.Errorf("read what is due: %w", err))
		}
		if len(due) == 0 {
			return all, nil
		}
		last = due[len(due)-1]
		slices.SortStableFunc(due, func(a, b row) int { return strings.Compare(a.AccountID, b.AccountID) })
		for len(due) > 0 {
			var done int64
			left := due
			err := p.batch(ctx, func(tx database.Tx, more func() bool) (err error) {
				done = 0
				left, err = chunks(due, more, func(account string, keys []string) error {
					n, err := do(tx, account, keys)
					done += n
					return err
				})
				return err
			})
			if err != nil {
				return all, err
			}
			all, due = all+done, left
		}
	}
	return all, ctx.Err()
}

// Skew is by how much a caller's clock may be wrong: a key that is a UUIDv7 may tell a time so much later than it was used. A tombstone
// stays that much longer than is promised, so that, when it goes, the time in its key is past whatever is asked about it. A day is a
// clock in another time zone, and more; no more than a tenth of the whole, for those who keep little.
func Skew(tombstone time.Duration) time.Duration { return min(24*time.Hour, tombstone/10) }
