package payments

import (
	"fmt"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/review"
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

// inReview reads up to limit unknown objects of an account about which somebody is asked, in the order of their reviews, after the last that
// was read.
func (s store) inReview(read *gorm.DB, account, last string, limit int) ([]unmatched, error) {
	var rows []unmatched
	err := read.Joins("JOIN reviews r ON r.account_id = unmatched.account_id AND r.id = unmatched.review_id").
		Where("unmatched.account_id = ? AND r.state = ? AND r.id > ?", account, review.StateOpen, last).
		Order("r.id").Limit(limit).Find(&rows).Error
	if err != nil {
		return nil, database.Classify(fmt.Errorf("read unmatched objects: %w", err))
	}
	return rows, nil
}

// named is the operation whose payment or refund the provider calls so; empty: there is none. No index leads there, since every payment
// would pay for it, and hardly any object is ever looked for.
func (s store) named(read *gorm.DB, account, reference string) (operationID string, err error) {
	var found []string
	err = read.Raw(`SELECT operation_id FROM payments WHERE account_id = ? AND reference = ?
		UNION ALL SELECT operation_id FROM refunds WHERE account_id = ? AND reference = ?`, account, reference, account, reference).Scan(&found).Error
	if err != nil || len(found) == 0 {
		return "", database.Classify(err)
	}
	return found[0], nil
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
