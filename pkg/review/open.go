package review

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"gorm.io/gorm/clause"

	"github.com/einmal/einmal/pkg/catalogue"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

// Open asks a person. An open review of the same kind about the same operation is the same question: it gets the new evidence,
// if that says anything new. Evidence against what a person has said before opens a review that names both.
func Open(tx database.Tx, q Question) (id string, err error) {
	for { // until nobody was faster: whoever was has opened it, added to it, or resolved it
		known, found, err := sameQuestion(tx, q)
		switch {
		case err != nil:
			return "", err
		case !found:
			id, opened, err := open(tx, q)
			if err != nil || opened {
				return id, err
			}
			continue
		}
		added, err := addEvidence(tx, known, q.Evidence)
		if err != nil || added {
			return known.ID, err
		}
	}
}

// Add gives evidence to what is open about how an operation ends, if anything is, and says anything new.
func Add(tx database.Tx, account, operationID string, e Evidence) error {
	for _, kind := range Kinds {
		if !kind.AboutEnd() {
			continue
		}
		for {
			known, found, err := sameQuestion(tx, Question{AccountID: account, OperationID: operationID, Kind: kind})
			if err != nil {
				return err
			}
			if !found {
				break
			}
			added, err := addEvidence(tx, known, []Evidence{e})
			if err != nil {
				return err
			}
			if added {
				break
			}
		}
	}
	return nil
}

// sameQuestion finds the open review that asks what q asks.
func sameQuestion(tx database.Tx, q Question) (row, bool, error) {
	if q.OperationID == "" {
		return row{}, false, nil // about nothing of ours, so two of them are about two things
	}
	var rows []row
	err := tx.Table("reviews").Where("account_id = ? AND operation_id = ? AND kind = ? AND state = ?", q.AccountID, q.OperationID, q.Kind, StateOpen).
		Limit(1).Find(&rows).Error
	if err != nil || len(rows) == 0 {
		return row{}, false, wrap("open review", err)
	}
	return rows[0], true, nil
}

// open inserts a review and reports whether it did: not if somebody else has opened it meanwhile.
func open(tx database.Tx, q Question) (id string, opened bool, err error) {
	known := q.Evidence
	if q.Kind == Contradiction && q.OperationID != "" {
		said, err := saidBefore(tx, q)
		if err != nil {
			return "", false, err
		}
		known = append(said, known...)
	}
	evidence, err := json.Marshal(known)
	if err != nil {
		return "", false, fmt.Errorf("open review: %w", err)
	}
	terms := catalogue.TermsOf(q.Type)
	id = idempotency.NewID("rev", tx.Now)
	insert := tx.Table("reviews").Clauses(onSameQuestion).Create(&row{
		AccountID: q.AccountID, ID: id, Kind: q.Kind, OperationID: q.OperationID, Owner: terms.Owner, Evidence: string(evidence),
		State: StateOpen, OpenedAt: tx.Now, DueAt: tx.Now.Add(terms.Due), Escalation: terms.Escalation,
	})
	return id, insert.RowsAffected == 1, wrap("open review", insert.Error)
}

// saidBefore is what a person has declared the operation of a contradiction to be, if anybody has: their word is the other half of it.
func saidBefore(tx database.Tx, q Question) ([]Evidence, error) {
	var rows []row
	err := tx.Table("reviews").Where("account_id = ? AND operation_id = ? AND resolved_as <> ''", q.AccountID, q.OperationID).
		Order("id DESC").Limit(1).Find(&rows).Error
	if err != nil || len(rows) == 0 {
		return nil, wrap("read resolution", err)
	}
	r, err := rows[0].review()
	if err != nil || len(r.Evidence) == 0 || r.ResolvedAt == nil {
		return nil, err
	}
	last := r.Evidence[len(r.Evidence)-1] // which Resolve has added
	return []Evidence{{Source: r.ResolvedBy, At: *r.ResolvedAt, Says: fmt.Sprintf("said in %s that it has %s: %s", r.ID, r.ResolvedAs, last.Says)}}, nil
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
