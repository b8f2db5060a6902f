package outbox

import (
	"errors"
	"fmt"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

// ErrNotWaiting means that the effect has ended, or its turn has come. It is none of the errors of ending another effect, in which its turn may come.
var ErrNotWaiting = errors.New("effect does not wait for its turn")

// Wait writes an effect as Enqueue does, for an operation that waits for its turn: it is not due before Turn.
func (o *Outbox) Wait(tx database.Tx, op idempotency.Operation, target, name string, command []byte) error {
	return o.insertQueued(tx, op, target, name, command, nil)
}

// Turn makes the effect of an operation due. It is called in the transaction that gives it what it has waited for; call Nudge after
// the commit, unless that is the outbox's own. ErrNotWaiting: somebody has ended it at this moment, for one; nothing was done. Until tx ends
// nobody does.
func (o *Outbox) Turn(tx database.Tx, account, operationID string) error {
	e, err := o.ofOperation(tx, account, operationID)
	switch {
	case errors.Is(err, ErrNoEffect):
		return ErrNotWaiting
	case err != nil:
		return err
	}
	changed, err := turn(tx, e)
	if err == nil && !changed {
		err = ErrNotWaiting
	}
	return err
}

// Refuse ends an operation as failed whose effect has certainly not been sent, and is not wanted any more. ErrNotWaiting as of Turn.
func (o *Outbox) Refuse(tx database.Tx, account, operationID string, reason Reason) error {
	e, t, err := o.ofTarget(tx, account, operationID)
	switch {
	case errors.Is(err, ErrNoEffect):
		return ErrNotWaiting
	case err != nil:
		return err
	}
	switch changed, err := sendsExhausted(tx, e); {
	case err != nil:
		return err
	case !changed:
		return ErrNotWaiting
	}
	return o.finish(tx, t, e, End{State: idempotency.Failed, Reason: reason})
}

// Stopped ends an operation as canceled whose effect another one has broken off: called in the transaction that settles that one,
// with what it has shown. An operation that has ended meanwhile keeps its answer, and a person hears of it if that says something else.
func (o *Outbox) Stopped(tx database.Tx, account, operationID string, ev Evidence) error {
	ev.Finding, ev.Reference = Stopped, "" // as far as the effect is concerned; what it is named was the other one's
	e, t, err := o.ofTarget(tx, account, operationID)
	if errors.Is(err, ErrNoEffect) {
		return o.stoppedAfterEnd(tx, account, operationID, ev)
	}
	if err != nil {
		return err
	}
	switch changed, err := stopped(tx, e); {
	case err != nil:
		return err
	case !changed:
		return o.stoppedAfterEnd(tx, account, operationID, ev)
	}
	if err := t.learn(tx, e, ev); err != nil {
		return err
	}
	return o.finish(tx, t, e, End{State: idempotency.Canceled, Reason: ByStop, Evidence: ev})
}

// stoppedAfterEnd compares what another effect has shown with what an operation has become.
func (o *Outbox) stoppedAfterEnd(tx database.Tx, account, operationID string, ev Evidence) error {
	var ended []Effect
	if err := tx.Where("account_id = ? AND operation_id = ?", account, operationID).Limit(1).Find(&ended).Error; err != nil {
		return fmt.Errorf("read effect: %w", err)
	}
	if len(ended) == 0 {
		return nil
	}
	return o.compare(tx, ended[0], ev)
}
