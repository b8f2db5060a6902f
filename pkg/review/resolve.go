package review

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/einmal/einmal/pkg/database"
)

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
