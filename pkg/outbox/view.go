package outbox

import (
	"context"
	"fmt"

	"gorm.io/gorm"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

// Describe is the hook of idempotency.Options: it adds to operations what only their effects know, the state while they are
// open, the target, the sends.
func Describe(db *database.DB) func(ctx context.Context, ops []idempotency.Operation) error {
	return func(ctx context.Context, ops []idempotency.Operation) error {
		return describeAll(db.Read(ctx), ops)
	}
}

// DescribeIn adds it as a transaction sees it, which may have changed the effect.
func DescribeIn(tx database.Tx, op *idempotency.Operation) error {
	ops := []idempotency.Operation{*op}
	if err := describeAll(tx.DB, ops); err != nil {
		return err
	}
	*op = ops[0]
	return nil
}

func describeAll(db *gorm.DB, ops []idempotency.Operation) error {
	if len(ops) == 0 {
		return nil
	}
	ids := make([]string, len(ops))
	for i := range ops {
		ids[i] = ops[i].ID
	}
	of := func() *gorm.DB { return db.Where("account_id = ? AND operation_id IN ?", ops[0].AccountID, ids) }
	var effects []Effect
	if err := of().Find(&effects).Error; err != nil {
		return database.Classify(fmt.Errorf("read effects: %w", err))
	}
	if len(effects) == 0 {
		return nil
	}
	var attempts []Attempt
	if err := of().Where("kind = ?", kindSend).Order("id").Find(&attempts).Error; err != nil {
		return database.Classify(fmt.Errorf("read attempts: %w", err))
	}
	for _, e := range effects {
		for i := range ops {
			if ops[i].ID == e.OperationID {
				describe(&ops[i], e, attempts)
			}
		}
	}
	return nil
}

func describe(op *idempotency.Operation, e Effect, attempts []Attempt) {
	// An operation that settled after its row was read, and before the effect was, is still as it was read: a final state
	// without its answer would be neither.
	if !op.State.Final() && !e.State.Final() {
		op.State, op.UpdatedAt = e.State, e.UpdatedAt
	}
	op.Effect = &idempotency.Effect{Target: e.Target, Key: e.EffectKey, InDoubt: e.inDoubt(), Reference: e.Reference, ReviewID: e.ReviewID, ApprovalID: e.ApprovalID, Deadline: e.Deadline}
	for _, a := range attempts {
		if a.OperationID != op.ID {
			continue
		}
		op.Effect.Sends = append(op.Effect.Sends, idempotency.Send{
			ID: a.ID, StartedAt: a.StartedAt, EndedAt: a.EndedAt, Outcome: a.outcome(), Error: a.Error, Reference: a.Reference,
		})
	}
}
