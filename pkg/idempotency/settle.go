package idempotency

import (
	"errors"
	"fmt"

	"github.com/einmal/einmal/pkg/database"
)

// ErrStateChanged means that the operation was not in the state that the caller had read. Read it again, decide again.
var ErrStateChanged = errors.New("operation changed state meanwhile")

// Claim claims a following operation inside the transaction of another one, in the state queued or awaiting_approval. It
// reports false, and changes nothing, when the key is taken: then the following operation exists. It never waits for another
// process beyond the lock time-out.
func (x *Executor) Claim(tx database.Tx, req Request, initial Answer) (Operation, bool, error) {
	a, err := x.newAttempt(req)
	if err != nil {
		return Operation{}, false, err
	}
	op := a.operation
	op.CreatedAt, op.UpdatedAt = tx.Now, tx.Now
	won, err := insertClaim(tx, op, true)
	if err != nil || !won {
		return Operation{}, false, err
	}
	if err := finishClaim(tx, &op, initial); err != nil {
		return Operation{}, false, err
	}
	return op, true, x.options.Record(tx, a.event(Attempted, tx.Now, op), a.event(op.State.becomes(), tx.Now, op))
}

// Settle moves an operation from one state to the state of its answer, with the answer if that is final, and records it. The
// move must be in the transition table, and the row must still be in state from, else ErrStateChanged and nothing is written:
// of any number of concurrent settlers of one operation one succeeds.
func (x *Executor) Settle(tx database.Tx, op Operation, from State, answer Answer) error {
	if !from.CanBecome(answer.State) {
		return fmt.Errorf("settle operation: %s can't become %s", from, answer.State)
	}
	if answer.State.Final() && answer.Status == 0 {
		return fmt.Errorf("settle operation: a final answer needs a status")
	}
	op.take(answer, tx.Now)
	update := writeAnswer(tx.DB, op, from)
	switch {
	case update.Error != nil:
		return fmt.Errorf("settle operation: %w", update.Error)
	case update.RowsAffected == 0:
		return fmt.Errorf("settle operation: %w", ErrStateChanged)
	}
	return x.options.Record(tx, Event{
		Type: answer.State.becomes(), At: tx.Now, Account: op.AccountID, Principal: op.Principal, AgentRun: op.AgentRun, RequestID: op.RequestID,
		OperationID: op.ID, KeyHash: op.IdempotencyKey.Hash(), Fingerprint: op.Fingerprint, Route: op.Route, From: from, To: answer.State,
	})
}
