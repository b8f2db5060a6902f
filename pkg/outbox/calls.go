package outbox

import (
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/review"
)

// mostCalls bounds what is read of an operation's calls for a person: all sends and some days of looks.
const mostCalls = 1000

// Calls are evidence that gathers by itself: what each call for an operation has shown, up to a time, oldest first. Equal ones that follow
// each other are one, with how many they were: what is asked for days mostly says the same.
func Calls(db *gorm.DB, account, operationID string, until time.Time) ([]review.Evidence, error) {
	if operationID == "" {
		return nil, nil
	}
	var newest []struct {
		Attempt
		Target string
	}
	err := db.Table("attempts a").Select("a.*, e.target").Joins("JOIN effects e ON e.account_id = a.account_id AND e.operation_id = a.operation_id").
		Where("a.account_id = ? AND a.operation_id = ? AND a.started_at <= ?", account, operationID, until).
		Order("a.id DESC").Limit(mostCalls).Scan(&newest).Error
	if err != nil {
		return nil, database.Classify(fmt.Errorf("read calls: %w", err))
	}
	var all []review.Evidence
	for i := len(newest) - 1; i >= 0; {
		first, at, n := newest[i], newest[i].at(), 0
		for ; i >= 0 && newest[i].Kind == first.Kind && newest[i].shows() == first.shows(); i-- {
			at = newest[i].at()
			n++
		}
		says := first.Kind + ": " + first.shows()
		if n > 1 {
			says = fmt.Sprintf("%s, %d times since %s: %s", first.Kind, n, first.at().Format(time.RFC3339), first.shows())
		}
		all = append(all, review.Evidence{Source: first.Target, At: at, Says: says})
	}
	return all, nil
}

// at is when a call has shown something, or began.
func (a Attempt) at() time.Time {
	if a.EndedAt != nil {
		return *a.EndedAt
	}
	return a.StartedAt
}

// shows is what a call has shown, for people.
func (a Attempt) shows() string {
	if a.EndedAt == nil {
		return "no outcome; it is under way, or its process has died"
	}
	says := string(a.Outcome)
	if a.Error != "" {
		says += ": " + a.Error
	}
	if a.Reference != "" {
		says += " (" + a.Reference + ")"
	}
	return says
}
