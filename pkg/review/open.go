package review

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"gorm.io/gorm/clause"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

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

// wrap says what failed, if anything did.
func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
