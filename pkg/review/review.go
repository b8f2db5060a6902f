// Package review keeps what only a person can decide: an effect of which no machine can say whether it happened, or evidence
// against what was already decided. A review is opened with what is known and stays until somebody resolves it with evidence.
package review

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

// Kind says why a person is asked.
type Kind string

const (
	Unknown       Kind = "unknown"       // the effect may have happened
	Contradiction Kind = "contradiction" // evidence against a final state
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

// Open asks a person. An open review of the same kind about the same operation is the same question: it gets the new evidence,
// if that says anything new.
func Open(tx database.Tx, r Review) (id string, err error) {
	for { // until nobody was faster: whoever was has opened it, added to it, or resolved it
		known, found, err := sameQuestion(tx, r)
		switch {
		case err != nil:
			return "", err
		case !found:
			id, opened, err := open(tx, r)
			if err != nil || opened {
				return id, err
			}
			continue
		}
		added, err := addEvidence(tx, known, r.Evidence)
		if err != nil || added {
			return known.ID, err
		}
	}
}

// sameQuestion finds the open review that asks what r asks.
func sameQuestion(tx database.Tx, r Review) (row, bool, error) {
	if r.OperationID == "" {
		return row{}, false, nil // about nothing of ours, so two of them are about two things
	}
	var rows []row
	err := tx.Table("reviews").Where("account_id = ? AND operation_id = ? AND kind = ? AND state = ?", r.AccountID, r.OperationID, r.Kind, StateOpen).
		Limit(1).Find(&rows).Error
	if err != nil || len(rows) == 0 {
		return row{}, false, wrap("open review", err)
	}
	return rows[0], true, nil
}

// open inserts a review and reports whether it did: not if somebody else has opened it meanwhile.
func open(tx database.Tx, r Review) (id string, opened bool, err error) {
	evidence, err := json.Marshal(r.Evidence)
	if err != nil {
		return "", false, fmt.Errorf("open review: %w", err)
	}
	id = idempotency.NewID("rev", tx.Now)
	insert := tx.Table("reviews").Clauses(onSameQuestion).Create(&row{
		AccountID: r.AccountID, ID: id, Kind: r.Kind, OperationID: r.OperationID, Owner: r.Owner, Evidence: string(evidence),
		State: StateOpen, OpenedAt: tx.Now, DueAt: tx.Now.Add(due),
	})
	return id, insert.RowsAffected == 1, wrap("open review", insert.Error)
}

// onSameQuestion names the index that keeps one question from being asked twice.
var onSameQuestion = clause.OnConflict{
	Columns:     []clause.Column{{Name: "account_id"}, {Name: "operation_id"}, {Name: "kind"}},
	TargetWhere: clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "state = 'open' AND operation_id <> ''"}}},
	DoNothing:   true,
}

// addEvidence reports whether the review was still as it is known, and has all evidence now.
func addEvidence(tx database.Tx, known row, more []Evidence) (bool, error) {
	r, err := known.review()
	if err != nil {
		return false, err
	}
	for _, e := range more {
		if !slices.ContainsFunc(r.Evidence, func(old Evidence) bool { return old.Source == e.Source && old.Says == e.Says }) {
			r.Evidence = append(r.Evidence, e)
		}
	}
	evidence, err := json.Marshal(r.Evidence)
	if err != nil {
		return false, fmt.Errorf("add evidence: %w", err)
	}
	update := tx.Exec("UPDATE reviews SET evidence = ? WHERE account_id = ? AND id = ? AND state = ? AND evidence = ?",
		string(evidence), known.AccountID, known.ID, StateOpen, known.Evidence)
	return update.RowsAffected == 1, wrap("add evidence", update.Error)
}

// Resolve closes a review. Of any number at once one succeeds; the rest get ErrResolved.
func Resolve(tx database.Tx, account, id, by string, evidence Evidence) (Review, error) {
	for { // until no evidence came between reading and writing
		known, err := find(tx.DB, account, id)
		if err != nil {
			return Review{}, err
		}
		r, err := known.review()
		switch {
		case err != nil:
			return Review{}, err
		case r.State == StateResolved:
			return Review{}, ErrResolved
		}
		r.Evidence, r.State, r.ResolvedBy, r.ResolvedAt = append(r.Evidence, evidence), StateResolved, by, &tx.Now
		text, err := json.Marshal(r.Evidence)
		if err != nil {
			return Review{}, fmt.Errorf("resolve review: %w", err)
		}
		update := tx.Exec(`UPDATE reviews SET state = ?, resolved_by = ?, resolved_at = ?, evidence = ?
			WHERE account_id = ? AND id = ? AND state = ? AND evidence = ?`,
			StateResolved, by, tx.Now, string(text), account, id, StateOpen, known.Evidence)
		if update.Error != nil || update.RowsAffected == 1 {
			return r, wrap("resolve review", update.Error)
		}
	}
}

// ResolveFor closes the question whether an operation's effect happened, once that is known.
func ResolveFor(tx database.Tx, account, operationID, by string) error {
	err := tx.AtCommit().Exec("UPDATE reviews SET state = ?, resolved_by = ?, resolved_at = ? WHERE account_id = ? AND operation_id = ? AND kind = ? AND state = ?",
		StateResolved, by, tx.Now, account, operationID, Unknown, StateOpen).Error
	if err != nil {
		return fmt.Errorf("resolve review: %w", err)
	}
	return nil
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

// wrap says what failed, if anything did.
func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
