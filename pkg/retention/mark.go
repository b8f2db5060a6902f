package retention

import (
	"context"
	"fmt"
	"time"

	"github.com/einmal/einmal/pkg/database"
)

// mark notes, in the transaction that forgets keys, that none of them tells a later time. Settings can't say that: they may have been
// others when the keys were forgotten, and may be others in another replica.
func mark(tx database.Tx, until time.Time) error {
	err := tx.AtCommit().Exec("UPDATE installation SET forgotten_until = ? WHERE id = 1 AND (forgotten_until IS NULL OR forgotten_until < ?)", until, until).Error
	if err != nil {
		return fmt.Errorf("note what is forgotten: %w", err)
	}
	return nil
}

// Forgotten is the hook of idempotency.Options: it reads up to which time keys were forgotten.
func Forgotten(db *database.DB) func(context.Context) (time.Time, error) {
	return func(ctx context.Context) (time.Time, error) {
		var until []time.Time
		err := db.Read(ctx).Table("installation").Where("forgotten_until IS NOT NULL").Pluck("forgotten_until", &until).Error
		if err != nil {
			return time.Time{}, database.Classify(fmt.Errorf("read what is forgotten: %w", err))
		}
		if len(until) == 0 {
			return time.Time{}, nil
		}
		return until[0], nil
	}
}
