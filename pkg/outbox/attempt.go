package outbox

import (
	"fmt"
	"time"

	"github.com/einmal/einmal/pkg/database"
)

// The kinds of attempts.
const (
	kindSend   = "send"
	kindLookup = "lookup"
	kindClose  = "close"
)

// Attempt is one call to a target. Those of kind send are the operation's attempts.
type Attempt struct {
	AccountID   string `gorm:"primaryKey"`
	ID          string `gorm:"primaryKey"` // try_…, the name under which the effect was taken
	OperationID string
	EffectID    string
	Kind        string // send, lookup or close
	Fence       int64
	StartedAt   time.Time
	EndedAt     *time.Time // nil: under way, or its process died
	Outcome     Finding    // empty while EndedAt is nil
	Error       string
	Reference   string
}

// outcome is what clients are told of a send: that its refusal is kept under the effect key is between us and the target, and what
// is not what was asked for, or maybe not ours, has no outcome yet.
func (a Attempt) outcome() string {
	switch a.Outcome {
	case Verdict:
		return string(Refused)
	case Different, Reused:
		return string(Ambiguous)
	case Stopped:
		return string(Refused)
	}
	return string(a.Outcome)
}

func beginAttempt(tx database.Tx, e Effect, id, kind string) error {
	if kind == "" {
		return nil // nothing will be called
	}
	err := tx.AtCommit().Create(&Attempt{
		AccountID: e.AccountID, ID: id, OperationID: e.OperationID, EffectID: e.ID, Kind: kind, Fence: e.Fence, StartedAt: tx.Now,
	}).Error
	if err != nil {
		return fmt.Errorf("begin attempt: %w", err)
	}
	return nil
}

// endAttempt notes what a call has shown, whether or not it still changes anything.
func endAttempt(tx database.Tx, e Effect, ev Evidence) error {
	if ev.Finding == "" {
		return nil // nothing was called
	}
	says := ""
	if ev.Finding != Confirmed && ev.Finding != Accepted {
		says = ev.Says
	}
	err := tx.AtCommit().Exec("UPDATE attempts SET ended_at = ?, outcome = ?, error = ?, reference = ? WHERE account_id = ? AND operation_id = ? AND id = ?",
		tx.Now, ev.Finding, says, ev.Reference, e.AccountID, e.OperationID, e.LeasedBy).Error
	if err != nil {
		return fmt.Errorf("end attempt: %w", err)
	}
	return nil
}
