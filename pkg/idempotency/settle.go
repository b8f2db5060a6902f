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
	op.State, op.Resource, op.CreatedAt, op.UpdatedAt = initial.State, initial.Resource, tx.Now, tx.Now
	if !claimed.CanBecome(op.State) || op.State.Final() {
		return Operation{}, false, fmt.Errorf("claim following operation: it can't begin in state %q", op.State)
	}
	won, err := insertClaim(tx, op, true)
	if err != nil || !won {
		return Operation{}, false, err
	}
	return op, true, x.options.Record(tx, a.event(Attempted, tx.Now, op), a.event(op.State.becomes(), tx.Now, op))
}

// Settle gives an operation its final answer and records it. from is the state that it leaves, which its effect has known since
// the claim; from there to the answer must be in the transition table. An operation that has its answer keeps it: then the error
// is ErrStateChanged and nothing is written, so of any number of settlers one succeeds. The event of the end tells what op.Effect says of its
// effect, if that is given.
func (x *Executor) Settle(tx database.Tx, op Operation, from State, answer Answer) error {
	if !answer.State.Final() || answer.Status == 0 {
		return fmt.Errorf("settle operation: state %q with status %d is no final answer", answer.State, answer.Status)
	}
	if !from.CanBecome(answer.State) {
		return fmt.Errorf("settle operation: %s can't become %s", from, answer.State)
	}
	op.take(answer, tx.Now)
	update := writeAnswer(tx.DB, op, AwaitingApproval, Queued, Running, Unknown)
	switch {
	case update.Error != nil:
		return fmt.Errorf("settle operation: %w", update.Error)
	case update.RowsAffected == 0:
		return fmt.Errorf("settle operation: %w", ErrStateChanged)
	}
	event := Event{
		Type: answer.State.becomes(), At: tx.Now, Account: op.AccountID, Principal: op.Principal, AgentRun: op.AgentRun, RequestID: op.RequestID,
		OperationID: op.ID, KeyHash: op.IdempotencyKey.Hash(), Fingerprint: op.Fingerprint, Route: op.Route, From: from, To: answer.State,
	}
	if op.Effect != nil {
		event.EffectKey, event.Reference = op.Effect.Key, op.Effect.Reference
	}
	return x.options.Record(tx, event)
}
