// Package review keeps what only a person can decide: an effect of which no machine can say whether it happened, or evidence
// against what was already decided. A review is opened with what is known and stays until somebody resolves it with evidence.
//
//	review.go    a review, read and listed
//	open.go      a question is asked once, however many notice that it is open
//	resolve.go   its answer: a person's, or the end of what it was about
//	escalate.go  what nobody has answered in time
//	count.go     how many there are, for who watches
package review

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"gorm.io/gorm"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

// Kind says why a person is asked.
type Kind string

const (
	Unknown       Kind = "unknown"       // the effect may have happened
	Deadline      Kind = "deadline"      // its deadline has passed, and it is not certain that it has not happened
	Contradiction Kind = "contradiction" // evidence against a final state, or of what nobody has agreed to yet
	Unmatched     Kind = "unmatched"     // something at the target that no operation of ours has made
)

// Kinds are all of them.
var Kinds = []Kind{Unknown, Deadline, Contradiction, Unmatched}

// AboutEnd reports whether the question is how an open operation ends: it is answered by that, or by a person who says how.
func (k Kind) AboutEnd() bool { return k == Unknown || k == Deadline }

// Question is what a person is to be asked.
type Question struct {
	AccountID   string
	Kind        Kind
	OperationID string // empty: about no operation of ours
	Type        string // of that; who is asked, and within what time, is in its entry of the catalogue
	Evidence    []Evidence
}

// Review is a question that was asked.
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
	Escalation  string     // who is asked after that
	EscalatedAt *time.Time // when that was told
	ResolvedBy  string
	ResolvedAt  *time.Time
	ResolvedAs  idempotency.State // what a person has said that the operation is; empty: nothing
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
	Escalation    string
	EscalatedAt   *time.Time
	ResolvedBy    string
	ResolvedAt    *time.Time
	ResolvedAs    idempotency.State
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

// isOpen is the condition of an index, word by word: a few are open of all that were ever asked.
const isOpen = "state = '" + StateOpen + "'"

// Filter is which reviews are listed; what is empty restricts nothing.
type Filter struct {
	State   string
	Kind    Kind
	Overdue time.Time // only open ones that were due by then; zero: any
}

// List reads up to limit reviews that a filter lets pass, newest first, older than the one named before (empty: all).
func List(ctx context.Context, db *database.DB, account string, f Filter, before string, limit int) ([]Review, error) {
	query := db.Read(ctx).Table("reviews").Where("account_id = ?", account)
	switch f.State {
	case "":
	case StateOpen:
		query = query.Where(isOpen)
	default:
		query = query.Where("state = ?", f.State)
	}
	if f.Kind != "" {
		query = query.Where("kind = ?", f.Kind)
	}
	if !f.Overdue.IsZero() {
		query = query.Where(isOpen).Where("due_at <= ?", f.Overdue)
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
		OpenedAt: r.OpenedAt, DueAt: r.DueAt, Escalation: r.Escalation, EscalatedAt: r.EscalatedAt,
		ResolvedBy: r.ResolvedBy, ResolvedAt: r.ResolvedAt, ResolvedAs: r.ResolvedAs,
	}
	if err := json.Unmarshal([]byte(r.Evidence), &review.Evidence); err != nil {
		return Review{}, fmt.Errorf("read review: evidence of %s: %w", r.ID, err)
	}
	return review, nil
}
