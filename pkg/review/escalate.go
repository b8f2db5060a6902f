package review

import (
	"context"
	"fmt"
	"time"

	"github.com/einmal/einmal/pkg/database"
)

// Overdue reads up to limit open reviews of all accounts that were due by then and of which nobody has told yet, the longest due first.
func Overdue(ctx context.Context, db *database.DB, now time.Time, limit int) ([]Review, error) {
	var rows []row
	asTheIndexHasIt := isOpen + " AND escalated_at IS NULL AND due_at <= ?"
	err := db.Read(ctx).Table("reviews").Where(asTheIndexHasIt, now).Order("due_at, id").Limit(limit).Find(&rows).Error
	if err != nil {
		return nil, database.Classify(fmt.Errorf("read overdue reviews: %w", err))
	}
	overdue := make([]Review, len(rows))
	for i, r := range rows {
		if overdue[i], err = r.review(); err != nil {
			return nil, err
		}
	}
	return overdue, nil
}

// Escalate notes that a review is overdue, and reports whether it did: of any number of replicas one does, once, which then tells whoever
// is to hear of it.
func Escalate(tx database.Tx, r Review) (bool, error) {
	update := tx.Exec("UPDATE reviews SET escalated_at = ? WHERE account_id = ? AND id = ? AND state = ? AND escalated_at IS NULL AND due_at <= ?",
		tx.Now, r.AccountID, r.ID, StateOpen, tx.Now)
	return update.RowsAffected == 1, wrap("escalate review", update.Error)
}
