package approval

import (
	"context"
	"fmt"

	"github.com/einmal/einmal/pkg/database"
)

// CountPending counts the questions of all accounts that wait for a person.
func CountPending(ctx context.Context, db *database.DB) (n int64, err error) {
	if err := db.Read(ctx).Table("approvals").Where(isPending).Count(&n).Error; err != nil {
		return 0, database.Classify(fmt.Errorf("count approvals: %w", err))
	}
	return n, nil
}
