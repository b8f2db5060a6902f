package approval

import (
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/einmal/einmal/pkg/database"
)

// Overdue reads up to limit questions of all accounts that nobody has answered in time, the oldest first, that come after the last
// one that was read (zero: from the beginning).
func Overdue(read *gorm.DB, now time.Time, last Approval, limit int) ([]Approval, error) {
	query := read.Where(isPending).Where("expires_at <= ?", now)
	if last.ID != "" {
		query = query.Where("(expires_at, account_id, id) > (?, ?, ?)", last.ExpiresAt, last.AccountID, last.ID)
	}
	var found []Approval
	if err := query.Order("expires_at, account_id, id").Limit(limit).Find(&found).Error; err != nil {
		return nil, database.Classify(fmt.Errorf("read overdue approvals: %w", err))
	}
	return found, nil
}
