package review

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

// Resolve closes a review with what a person has seen and, if they say so, what the operation is by that (empty: it stays what it is). Of any
// number at once one succeeds; the rest get ErrResolved.
func Resolve(tx database.Tx, account, id, by string, as idempotency.State, evidence Evidence) (Review, error) {
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
		r.Evidence, r.State, r.ResolvedBy, r.ResolvedAt, r.ResolvedAs = append(r.Evidence, evidence), StateResolved, by, &tx.Now, as
		text, err := json.Marshal(r.Evidence)
		if err != nil {
			return Review{}, fmt.Errorf("resolve review: %w", err)
		}
		update := tx.Exec(`UPDATE reviews SET state = ?, resolved_by = ?, resolved_at = ?, resolved_as = ?, evidence = ?
			WHERE account_id = ? AND id = ? AND state = ? AND evidence = ?`,
			StateResolved, by, tx.Now, as, string(text), account, id, StateOpen, known.Evidence)
		if update.Error != nil || update.RowsAffected == 1 {
			return r, wrap("resolve review", update.Error)
		}
	}
}

// ResolveFor closes the questions how an operation ends, once it has.
func ResolveFor(tx database.Tx, account, operationID, by string) error {
	err := tx.AtCommit().Exec("UPDATE reviews SET state = ?, resolved_by = ?, resolved_at = ? WHERE account_id = ? AND operation_id = ? AND kind IN (?, ?) AND state = ?",
		StateResolved, by, tx.Now, account, operationID, Unknown, Deadline, StateOpen).Error
	return wrap("resolve review", err)
}

// ResolveUnmatched closes a review about what was nobody's, once it is known whose it is.
func ResolveUnmatched(tx database.Tx, account, id string, found Evidence) error {
	_, err := Resolve(tx, account, id, LaterEvidence, "", found)
	if errors.Is(err, ErrResolved) {
		return nil // a person has found out before
	}
	return err
}

// LaterEvidence is who has resolved a review that no person has: what came to light by itself.
const LaterEvidence = "later evidence"
