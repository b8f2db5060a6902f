// Package review keeps what only a person can decide: an effect of which no machine can say whether it happened, or evidence
// against what was already decided. A review is opened with what is known and stays until somebody resolves it with evidence.
package review

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"gorm.io/gorm"

	"github.com/einmal/einmal/pkg/database"
)

// Kind says why a person is asked.
type Kind string

const (
	Unknown       Kind = "unknown"       // the effect may have happened
	Contradiction Kind = "contradiction" // evidence against a final state
	Unmatched     Kind = "unmatched"     // something at the target that no operation of ours has made
)

// due is how long an owner has before a review counts as late: a working day.
const due = 8 * time.Hour

// Review is one question to a person.
type Review struct {
	AccountID   string
	ID          string // rev_…
	Kind        Kind
	OperationID string
	Owner       string
	Evidence    []Evidence
	State       string // open or resolved
	OpenedAt    time.Time
	DueAt       time.Time
	ResolvedBy  string
	ResolvedAt  *time.Time
}

// Evidence is one thing that is known.
type Evidence struct {
	Source string    `json:"source"`
	At     time.Time `json:"at"`
	Says   string    `json:"says"`
}

var (
	// ErrNotFound: the account has no such review.
	ErrNotFound = errors.New("review not found")

	// ErrResolved: somebody was faster.
	ErrResolved = errors.New("review is resolved")
)

const (
	StateOpen     = "open"
	StateResolved = "resolved"
)

// row is a row of reviews.
type row struct {
	AccountID, ID string
	Kind          Kind
	OperationID   string
	Owner         string
	Evidence      string // JSON
	State         string
	OpenedAt      time.Time
	DueAt         time.Time
	ResolvedBy    string
	ResolvedAt    *time.Time
}

// Get reads one review.
func Get(db *gorm.DB, account, id string) (Review, error) {
	r, err := find(db, account, id)
	if err != nil {
		return Review{}, err
	}
	return r.review()
}

func find(db *gorm.DB, account, id string) (row, error) {
	var rows []row
	if err := db.Table("reviews").Where("account_id = ? AND id = ?", account, id).Limit(1).Find(&rows).Error; err != nil {
		return row{}, database.Classify(fmt.Errorf("read review: %w", err))
	}
	if len(rows) == 0 {
		return row{}, ErrNotFound
	}
	return rows[0], nil
}

// List reads up to limit reviews, newest first, of a state (empty: any), older than the one named before (empty: all).
func List(ctx context.Context, db *database.DB, account, state, before string, limit int) ([]Review, error) {
	query := db.Read(ctx).Table("reviews").Where("account_id = ?", account)
	if state != "" {
		query = query.Where("state = ?", state)
	}
	if before != "" {
		query = query.Where("id < ?", before)
	}
	var rows []row
	if err := query.Order("id DESC").Limit(limit).Find(&rows).Error; err != nil {
		return nil, database.Classify(fmt.Errorf("list reviews: %w", err))
	}
	reviews := make([]Review, len(rows))
	for i, r := range rows {
		var err error
		if reviews[i], err = r.review(); err != nil {
			return nil, err
		}
	}
	return reviews, nil
}

func (r row) review() (Review, error) {
	review := Review{
		AccountID: r.AccountID, ID: r.ID, Kind: r.Kind, OperationID: r.OperationID, Owner: r.Owner, State: r.State,
		OpenedAt: r.OpenedAt, DueAt: r.DueAt, ResolvedBy: r.ResolvedBy, ResolvedAt: r.ResolvedAt,
	}
	if err := json.Unmarshal([]byte(r.Evidence), &review.Evidence); err != nil {
		return Review{}, fmt.Errorf("read review: evidence of %s: %w", r.ID, err)
	}
	return review, nil
}
