package approval

import (
	"fmt"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

// Decision is what a person says to a question.
type Decision struct {
	By          string
	Approve     bool
	Fingerprint idempotency.Fingerprint // as they were shown it
	Reason      string
	AgentRun    string // of their request, and so is its id; for the audit
	RequestID   string
}

// May returns why a decision is not one about this question, or nil. That the question is still open is for Decide to say.
func (a Approval) May(d Decision) error {
	switch {
	case a.RequestedBy == d.By:
		return ErrRequester
	case a.State != Pending:
		return ErrDecided
	case a.Fingerprint != d.Fingerprint:
		return ErrOtherFingerprint
	}
	return nil
}

// Decide writes a decision. Of any number at once one succeeds; the rest get ErrDecided.
func Decide(tx database.Tx, a Approval, d Decision) (Approval, error) {
	a.State, a.DecidedBy, a.Approved, a.Reason, a.DecidedAt = Rejected, d.By, d.Approve, d.Reason, &tx.Now
	if d.Approve {
		a.State = Approved
	}
	update := tx.Exec(`UPDATE approvals SET state = ?, decided_by = ?, approved = ?, reason = ?, decided_at = ?
		WHERE account_id = ? AND id = ? AND state = ? AND fingerprint = ? AND expires_at > ? AND requested_by <> ?`,
		a.State, a.DecidedBy, a.Approved, a.Reason, a.DecidedAt, a.AccountID, a.ID, Pending, d.Fingerprint, tx.Now, d.By)
	switch {
	case update.Error != nil:
		return a, fmt.Errorf("decide approval: %w", update.Error)
	case update.RowsAffected != 1:
		return a, ErrDecided
	}
	return a, nil
}

// End ends a question that nobody has answered, or a yes that can't be used any more: as Expired or Stale, and why. What has ended
// stays as it is, and who has decided what stays written.
func End(tx database.Tx, a Approval, as State, why string) (Approval, error) {
	update := tx.Exec(`UPDATE approvals SET state = ?, reason = CASE WHEN decided_by = '' THEN ? ELSE reason END
		WHERE account_id = ? AND id = ? AND state IN ?`, as, why, a.AccountID, a.ID, []State{Pending, Approved})
	if update.Error != nil {
		return a, fmt.Errorf("end approval: %w", update.Error)
	}
	if update.RowsAffected == 1 {
		a.State = as
		if a.DecidedBy == "" {
			a.Reason = why
		}
	}
	return a, nil
}
