package approval

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

// Question is what a person is to decide.
type Question struct {
	Facts       any    // an object: what exactly will happen
	Consequence string // the same in one sentence
}

// Ask asks a person whether an operation may have its effect, in the transaction that accepts it. world is what is there now. The
// question, and a yes to it, hold until then.
func Ask(tx database.Tx, op idempotency.Operation, q Question, world string, until time.Time) (Approval, error) {
	facts, err := json.Marshal(q.Facts, json.Deterministic(true))
	if err != nil {
		return Approval{}, fmt.Errorf("ask for approval: %w", err)
	}
	a := Approval{
		AccountID: op.AccountID, ID: idempotency.NewID("apr", tx.Now), OperationID: op.ID, IdempotencyKey: op.IdempotencyKey,
		Fingerprint: op.Fingerprint, WorldVersion: world, RequestedBy: op.Principal, Facts: string(facts), Consequence: q.Consequence,
		State: Pending, CreatedAt: tx.Now, ExpiresAt: until,
	}
	if err := tx.AtCommit().Create(&a).Error; err != nil {
		return Approval{}, fmt.Errorf("ask for approval: %w", err)
	}
	return a, nil
}
