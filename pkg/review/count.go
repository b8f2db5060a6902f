package review

import (
	"context"
	"fmt"
	"time"

	"github.com/einmal/einmal/pkg/database"
)

// Count is how many reviews of a kind nobody has resolved.
type Count struct {
	Open    int64
	Overdue int64 // of these
}

// CountOpen counts the open reviews of all accounts, by kind; a kind of which there are none is there as well.
func CountOpen(ctx context.Context, db *database.DB, now time.Time) (map[Kind]Count, error) {
	var rows []struct {
		Kind          Kind
		Open, Overdue int64
	}
	err := db.Read(ctx).Raw("SELECT kind, count(*) AS open, sum(CASE WHEN due_at <= ? THEN 1 ELSE 0 END) AS overdue FROM reviews WHERE "+isOpen+" GROUP BY kind",
		now).Scan(&rows).Error
	if err != nil {
		return nil, database.Classify(fmt.Errorf("count reviews: %w", err))
	}
	counts := map[Kind]Count{}
	for _, kind := range Kinds {
		counts[kind] = Count{}
	}
	for _, r := range rows {
		counts[r.Kind] = Count{r.Open, r.Overdue}
	}
	return counts, nil
}
