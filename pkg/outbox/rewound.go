package outbox

import (
	"fmt"

	"gorm.io/gorm"

	"github.com/einmal/einmal/pkg/approval"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

// DoubtAll makes every open effect of a database unknown that was set back to an older state: any of them may have been sent in the time that is
// forgotten, and their targets are asked before anything is sent. It returns how many there were. Nobody else writes meanwhile (audit.Sealer.Guard).
//
// What waits for a person may have been answered in that time, and have gone out: its question ends stale, and a new yes needs a new operation.
// An effect that waits for its turn is left waiting: it holds no lock, so no send of it counts at its target, and it draws a new token when it
// has its turn. And so is one whose key is another's: whatever its target would say under that, or close, may not be ours.
func DoubtAll(tx database.Tx, record func(tx database.Tx, events ...idempotency.Event) error) (int, error) {
	var open []Effect
	states := []idempotency.State{idempotency.AwaitingApproval, idempotency.Queued, idempotency.Running, idempotency.Unknown}
	if err := tx.Omit("command").Where("state IN ?", states).Find(&open).Error; err != nil {
		return 0, fmt.Errorf("read open effects: %w", err)
	}
	doubted := 0
	for _, e := range open {
		if e.State == idempotency.Queued && e.NextAt == nil {
			continue
		}
		switch own, err := hasOwnKey(tx, e); {
		case err != nil:
			return 0, err
		case !own:
			continue
		}
		changed, err := forgotten(tx, e)
		if err != nil {
			return 0, err
		}
		if !changed {
			return 0, fmt.Errorf("doubt effect %s: somebody is changing it; end every service that writes this database", e.ID)
		}
		if e.State == idempotency.AwaitingApproval {
			if err := forgetQuestion(tx, e); err != nil {
				return 0, err
			}
		}
		doubted++
		was := e.State
		if was == idempotency.Unknown {
			continue
		}
		e.State = idempotency.Unknown
		err = record(tx, idempotency.Event{
			Type: idempotency.UnknownEvent, At: tx.Now, Account: e.AccountID, Principal: "operator", OperationID: e.OperationID,
			KeyHash: e.IdempotencyKey.Hash(), EffectKey: e.EffectKey, Reference: e.Reference, From: was, To: e.State,
		})
		if err != nil {
			return 0, err
		}
	}
	return doubted, nil
}

// forgetQuestion ends the question about an effect, and the time in which it may be sent: whether somebody has answered is forgotten.
func forgetQuestion(tx database.Tx, e Effect) error {
	a, err := approval.Get(tx.DB, e.AccountID, e.ApprovalID)
	if err == nil {
		_, err = approval.End(tx, a, approval.Stale, "The database was set back: whether somebody had answered is forgotten.")
	}
	if err == nil {
		_, err = update(tx, rowOf(e, tx.DB), map[string]any{"approved_until": tx.Now})
	}
	if err != nil {
		return fmt.Errorf("doubt effect %s: %w", e.ID, err)
	}
	return nil
}

// forgotten makes an effect unknown of which sends may be forgotten: the first of them under the fence that comes next, and as early as the effect is old.
func forgotten(tx database.Tx, e Effect) (bool, error) {
	return change(tx, e, tx.DB, released(map[string]any{
		"state": idempotency.Unknown, "fence": gorm.Expr("fence + 1"), "doubt": gorm.Expr("coalesce(doubt, fence + 1)"),
		"first_sent_at": gorm.Expr("coalesce(first_sent_at, created_at)"), "next_at": tx.Now, "asks": 0, "quiet_until": nil,
	}))
}
