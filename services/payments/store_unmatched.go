package payments

import (
	"fmt"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/einmal/einmal/pkg/database"
)

// unmatched is an object at the provider of which we know nothing.
type unmatched struct {
	AccountID  string `gorm:"primaryKey"` // whose operators are asked
	Reference  string `gorm:"primaryKey"`
	EventID    string // the first about it
	EventType  string
	Claims     string // JSON of claims
	ReceivedAt time.Time
	ReviewID   string
}

func (unmatched) TableName() string { return "unmatched" }

// keep notes an unknown object, if it is not noted yet.
func (s store) keep(tx database.Tx, u unmatched) error {
	err := tx.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "account_id"}, {Name: "reference"}}, DoNothing: true}).Create(&u).Error
	if err != nil {
		return fmt.Errorf("keep unmatched object: %w", err)
	}
	return nil
}

// overdue reads up to limit unknown objects, the oldest first, that were noted until then and that nobody has been asked about.
func (s store) overdue(read *gorm.DB, until time.Time, limit int) ([]unmatched, error) {
	var rows []unmatched
	err := read.Where("review_id = '' AND received_at <= ?", until).Order("received_at").Limit(limit).Find(&rows).Error
	if err != nil {
		return nil, database.Classify(fmt.Errorf("read unmatched objects: %w", err))
	}
	return rows, nil
}

// asked notes which review asks about an unknown object, and reports whether none had before.
func (s store) asked(tx database.Tx, u unmatched, reviewID string) (bool, error) {
	return changed("note review", tx.Exec("UPDATE unmatched SET review_id = ? WHERE account_id = ? AND reference = ? AND review_id = ''",
		reviewID, u.AccountID, u.Reference))
}

// forget drops an unknown object that has become known.
func (s store) forget(tx database.Tx, u unmatched) error {
	err := tx.Exec("DELETE FROM unmatched WHERE account_id = ? AND reference = ? AND review_id = ''", u.AccountID, u.Reference).Error
	if err != nil {
		return fmt.Errorf("forget unmatched object: %w", err)
	}
	return nil
}

// forgetReviewed drops up to most unknown objects about which a person has decided by then. There are as few of them as of such reviews,
// so no index leads to them. The provider may tell of one for days more; by then it has stopped.
func (s store) forgetReviewed(tx database.Tx, until time.Time, most int) (int64, error) {
	removed := tx.Exec(`DELETE FROM unmatched WHERE review_id <> '' AND (account_id, reference) IN (SELECT u.account_id, u.reference
		FROM unmatched u JOIN reviews r ON r.account_id = u.account_id AND r.id = u.review_id
		WHERE r.state = 'resolved' AND r.resolved_at < ? ORDER BY u.account_id, u.reference LIMIT ?)`, until, most)
	if removed.Error != nil {
		return 0, fmt.Errorf("forget reviewed objects: %w", removed.Error)
	}
	return removed.RowsAffected, nil
}
