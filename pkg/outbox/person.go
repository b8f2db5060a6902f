package outbox

import (
	"errors"
	"fmt"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/review"
)

var (
	// ErrNoEffect: the operation has no effect that could be asked about or canceled.
	ErrNoEffect = errors.New("operation has no open effect")

	// ErrRunning: the effect may have happened, and its target can't close.
	ErrRunning = errors.New("effect may have happened and can't be closed")

	// ErrUndecided: the effect is unknown, a person was asked how it ends, and they have said nothing of that.
	ErrUndecided = errors.New("effect waits for a decision")
)

// Reconcile makes the target of an operation's effect be asked now, and returns the effect as it was. A live lease is not
// disturbed: then the call under way answers soon anyway.
func (o *Outbox) Reconcile(tx database.Tx, account, operationID string) (Effect, error) {
	e, err := o.ofOperation(tx, account, operationID)
	if err != nil {
		return Effect{}, err
	}
	_, err = askNow(tx, e)
	return e, err
}

// Cancel withdraws an operation and returns its effect as it then is: canceled at once if it has certainly not been sent,
// otherwise as it was, to be closed at the target. ErrRunning: it may have happened, and the target can't close, or would close by a
// key that is another's. ErrNotServed: only who serves the target knows what ends with the effect. Call Nudge and Announce after the
// commit.
func (o *Outbox) Cancel(tx database.Tx, account, operationID string) (Effect, error) {
	e, t, err := o.ofTarget(tx, account, operationID)
	if err != nil {
		return Effect{}, err
	}
	changed, err := cancel(tx, e)
	if err != nil {
		return Effect{}, err
	}
	if changed {
		err := o.finish(tx, t, e, End{State: idempotency.Canceled, Reason: ByPerson})
		e.State = idempotency.Canceled
		return e, err
	}
	own, err := hasOwnKey(tx, e)
	if err != nil {
		return Effect{}, err
	}
	if !t.Ability.Close || !own {
		return Effect{}, ErrRunning
	}
	switch changed, err = askToCancel(tx, e); {
	case err != nil:
		return Effect{}, err
	case !changed: // it has ended since we read it
		return Effect{}, ErrNoEffect
	}
	_, err = askNow(tx, e)
	return e, err
}

// Decide ends an unknown effect by a person's word. ErrRunning: somebody is asking the target at this moment, or it is not
// unknown. Where the target can close, a no withdraws the effect, which ends by the close or as what had happened (docs/decisions/0019); a
// yes about one that holds a lock which its target has not closed is ErrNotClosed. ErrNotServed as of Cancel. Call Announce after the
// commit.
func (o *Outbox) Decide(tx database.Tx, account, operationID string, state idempotency.State, reference string) error {
	e, t, err := o.ofTarget(tx, account, operationID)
	if err != nil {
		return err
	}
	own, err := hasOwnKey(tx, e)
	if err != nil {
		return err
	}
	if own { // under a key that is another's no copy of a send has an effect, and nothing can be closed
		switch err := t.mayDecide(tx, e); {
		case errors.Is(err, ErrNotClosed) && state != idempotency.Succeeded:
			return closeFirst(tx, e)
		case errors.Is(err, ErrNotClosed) && t.Lock == nil: // that it has happened frees nothing
		case err != nil:
			return err
		}
	}
	switch changed, err := decide(tx, e, state, reference); {
	case err != nil:
		return err
	case !changed:
		return ErrRunning
	}
	if reference != "" {
		e.Reference = reference
	}
	return o.finish(tx, t, e, End{State: state, Reason: ByPerson, Evidence: Evidence{Reference: reference, Shows: e.Shown}})
}

// mayDecide returns ErrNotClosed while a send of an effect may still arrive at a target that could make that impossible.
func (t Target) mayDecide(tx database.Tx, e Effect) error {
	switch {
	case t.Lock != nil:
		return t.Lock.MayDecide(tx, e)
	case !t.Ability.Close:
		return nil
	}
	// What a close has shown that came after every send is all that one will ever show.
	var closed int64
	err := tx.Raw(`SELECT count(*) FROM attempts c WHERE c.account_id = ? AND c.operation_id = ? AND c.kind = ? AND c.outcome = ? AND NOT EXISTS
		(SELECT 1 FROM attempts s WHERE s.account_id = c.account_id AND s.operation_id = c.operation_id AND s.kind = ? AND s.fence > c.fence)`,
		e.AccountID, e.OperationID, kindClose, Different, kindSend).Scan(&closed).Error
	switch {
	case err != nil:
		return fmt.Errorf("read closes: %w", err)
	case closed == 0:
		return ErrNotClosed
	}
	return nil
}

// Resolve does and records what follows for an operation from the resolution of a review. state is what a person has declared it to be, which is
// a Decide, with its errors; empty: it stays what it is. ErrUndecided: it is unknown, and they were asked what it is. What is closed first has
// not become anything by their word, and the event does not say so. Call Announce after the commit.
func (o *Outbox) Resolve(tx database.Tx, r review.Review, state idempotency.State, reference string) error {
	if state != "" {
		if err := o.Decide(tx, r.AccountID, r.OperationID, state, reference); err != nil {
			return err
		}
	}
	var about []Effect
	if err := tx.Clauses(held).Where("account_id = ? AND operation_id = ?", r.AccountID, r.OperationID).Limit(1).Find(&about).Error; err != nil {
		return fmt.Errorf("read effect: %w", err)
	}
	if len(about) == 0 {
		return nil // it is about nothing of ours
	}
	e := about[0]
	var from, to idempotency.State
	asked := r.Kind.AboutEnd() || e.NextAt == nil && e.ReviewID == r.ID // in the end nobody else would be
	switch {
	case state != "" && e.State.Final():
		from, to = idempotency.Unknown, e.State
	case state != "":
	case e.State == idempotency.Unknown && asked:
		return ErrUndecided
	default: // should it be in doubt later, that is a new question
		if err := rowOf(e, tx.DB).Table("effects").Where("review_id = ?", r.ID).UpdateColumn("review_id", "").Error; err != nil {
			return fmt.Errorf("note review: %w", err)
		}
	}
	event := o.becomes(tx, e, idempotency.Resolved, from, to, reference)
	event.Principal, event.AttemptID = r.ResolvedBy, ""
	return o.record(tx, event)
}

// closeFirst keeps a person's word that an effect came to nothing until its target has confirmed that it can't happen any more.
// Nothing is sent from now on; the effect ends canceled, or as what the target knows of it. Should neither come about, a person is asked
// again: who has said no looks no further.
func closeFirst(tx database.Tx, e Effect) error {
	if e.State != idempotency.Unknown {
		return ErrRunning
	}
	if _, err := askToCancel(tx, e); err != nil {
		return err
	}
	if err := askAnew(tx, e); err != nil {
		return err
	}
	_, err := askNow(tx, e)
	return err
}

// ofTarget reads the open effect of an operation, held, together with its target.
func (o *Outbox) ofTarget(tx database.Tx, account, operationID string) (Effect, Target, error) {
	e, err := o.ofOperation(tx, account, operationID)
	if err != nil {
		return Effect{}, Target{}, err
	}
	t, err := o.target(e.Target)
	if err != nil {
		return Effect{}, Target{}, fmt.Errorf("end effect: %w", err)
	}
	return e, t, nil
}

// ofOperation reads the open effect of an operation, and nobody else changes it until tx ends.
func (o *Outbox) ofOperation(tx database.Tx, account, operationID string) (Effect, error) {
	var open []Effect
	err := tx.Clauses(held).Where("account_id = ? AND operation_id = ? AND state NOT IN ?", account, operationID,
		[]idempotency.State{idempotency.Succeeded, idempotency.Failed, idempotency.Canceled}).Limit(1).Find(&open).Error
	switch {
	case err != nil:
		return Effect{}, fmt.Errorf("read effect: %w", err)
	case len(open) == 0:
		return Effect{}, ErrNoEffect
	}
	return open[0], nil
}
