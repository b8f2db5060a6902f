package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/einmal/einmal/pkg/approval"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

// Ask writes an effect as Enqueue does, for an operation that waits for a person's yes, and puts the question, which is open no longer than
// until the effect's deadline. The effect is not due before DecideApproval.
func (o *Outbox) Ask(tx database.Tx, op idempotency.Operation, target, name string, command []byte, q approval.Question) error {
	switch {
	case op.State != idempotency.AwaitingApproval:
		return fmt.Errorf("ask about effect: it can't begin in state %q", op.State)
	case o.ttl <= 0:
		return errors.New("ask about effect: the outbox has no time for which an approval holds")
	}
	e, t, err := o.newEffect(tx, op, target, name, command)
	if err != nil {
		return err
	}
	world, err := t.world(tx, e)
	if err != nil {
		return err
	}
	until := tx.Now.Add(o.ttl)
	if e.Deadline.Before(until) { // nothing is sent after that, whatever anybody says
		until = *e.Deadline
	}
	a, err := approval.Ask(tx, op, q, world, until)
	if err != nil {
		return err
	}
	e.ApprovalID, e.ApprovedUntil = a.ID, &a.ExpiresAt
	return insert(tx, e)
}

// DecideApproval writes a person's decision down and what follows from it: the effect may go out, or its operation is canceled. It returns the
// approval as it is then, which is expired or stale where the yes came too late: that is to be committed, too. ErrDecided: somebody was
// faster. ErrNotServed as of Cancel. Call Nudge and Announce after the commit.
func (o *Outbox) DecideApproval(tx database.Tx, account, id string, d approval.Decision) (approval.Approval, error) {
	a, err := approval.Get(tx.DB, account, id)
	if err != nil {
		return a, err
	}
	if err := a.May(d); err != nil {
		return a, err
	}
	e, t, err := o.ofTarget(tx, a.AccountID, a.OperationID)
	switch {
	case errors.Is(err, ErrNoEffect):
		return a, approval.ErrDecided
	case err != nil:
		return a, err
	case !d.Approve:
		return o.reject(tx, t, e, a, d)
	}
	return o.approve(tx, t, e, a, d)
}

// reject ends the operation.
func (o *Outbox) reject(tx database.Tx, t Target, e Effect, a approval.Approval, d approval.Decision) (approval.Approval, error) {
	if !a.ExpiresAt.After(tx.Now) {
		return o.tooLate(tx, t, e, a, ByExpiry)
	}
	changed, err := unapproved(tx, e)
	switch {
	case err != nil:
		return a, err
	case !changed || e.State != idempotency.AwaitingApproval:
		return a, approval.ErrDecided
	}
	if a, err = approval.Decide(tx, a, d); err != nil {
		return a, err
	}
	if err := o.record(tx, o.decided(tx, e, a, d, idempotency.RejectedEvent, idempotency.Canceled)); err != nil {
		return a, err
	}
	says := a.DecidedBy + " has said no."
	if a.Reason != "" {
		says = a.DecidedBy + " has said no: " + a.Reason
	}
	return a, o.finish(tx, t, e, End{State: idempotency.Canceled, Reason: ByRejection, Evidence: Evidence{Says: says}})
}

// approve lets the effect go out. The effect's row comes first, as in whatever else ends a question; from then on nobody else answers.
func (o *Outbox) approve(tx database.Tx, t Target, e Effect, a approval.Approval, d approval.Decision) (approval.Approval, error) {
	if !a.ExpiresAt.After(tx.Now) {
		return o.tooLate(tx, t, e, a, ByExpiry)
	}
	due := &tx.Now
	if t.Approved != nil {
		due = nil
	}
	changed, err := approve(tx, e, due)
	switch {
	case err != nil:
		return a, err
	case !changed:
		return a, approval.ErrDecided
	}
	world, err := t.world(tx, e)
	switch {
	case err != nil:
		return a, err
	case world != a.WorldVersion:
		return o.tooLate(tx, t, e, a, ByStaleness)
	}
	if a, err = approval.Decide(tx, a, d); err != nil {
		return a, err
	}
	if err := o.record(tx, o.decided(tx, e, a, d, idempotency.ApprovedEvent, idempotency.Queued)); err != nil || t.Approved == nil {
		return a, err
	}
	return a, t.Approved(tx, e)
}

// tooLate ends an operation whose question is not open any more, or not about what is there.
func (o *Outbox) tooLate(tx database.Tx, t Target, e Effect, a approval.Approval, why Reason) (approval.Approval, error) {
	changed, err := unapproved(tx, e)
	switch {
	case err != nil:
		return a, err
	case !changed:
		return a, approval.ErrDecided
	}
	if err := o.finish(tx, t, e, End{State: idempotency.Canceled, Reason: why}); err != nil {
		return a, err
	}
	return approval.Get(tx.DB, a.AccountID, a.ID)
}

// decided is the event of a person's decision.
func (o *Outbox) decided(tx database.Tx, e Effect, a approval.Approval, d approval.Decision, t idempotency.EventType, to idempotency.State) idempotency.Event {
	event := o.becomes(tx, e, t, idempotency.AwaitingApproval, to, "")
	event.Principal, event.AgentRun, event.RequestID, event.AttemptID, event.Fingerprint = d.By, d.AgentRun, d.RequestID, "", a.Fingerprint
	return event
}

// world is the version of what a person is shown of the world.
func (t Target) world(tx database.Tx, e Effect) (string, error) {
	if t.World == nil {
		return "", nil
	}
	version, err := t.World(tx, e)
	if err != nil {
		return "", fmt.Errorf("read version of the world: %w", err)
	}
	return version, nil
}

// errNotAsShown undoes a take: its effect is approved, but not in the world that there is now.
var errNotAsShown = errors.New("the world is not what the approver was shown")

// unchanged adds to the statement of a take to send that the world is still what the approver was shown. It comes after that statement:
// from then on nobody else changes what this effect holds.
func (t Target) unchanged(e Effect, statement func(tx database.Tx, by string) (bool, error)) func(tx database.Tx, by string) (bool, error) {
	if e.ApprovalID == "" || t.World == nil {
		return statement
	}
	return func(tx database.Tx, by string) (bool, error) {
		won, err := statement(tx, by)
		if err != nil || !won {
			return false, err
		}
		full, err := find(tx.DB, e) // listings leave the command out
		if err != nil {
			return false, err
		}
		world, err := t.world(tx, *full)
		if err != nil {
			return false, err
		}
		a, err := approval.Get(tx.DB, e.AccountID, e.ApprovalID)
		if err == nil && a.WorldVersion != world {
			err = errNotAsShown
		}
		return err == nil, err
	}
}

// lostTake follows a take that somebody else was faster with; or whose approval does not hold although its time has not come, which
// would be found again and again.
func (o *Outbox) lostTake(ctx context.Context, t Target, e Effect) error {
	if e.ApprovalID == "" {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, t.Lease) // as the take
	defer cancel()
	var holding int64
	until := o.db.Now().Add(t.Timeout)
	if err := rowOf(e, o.db.Read(bounded)).Table("effects").Where(approval.Holds, until).Count(&holding).Error; err != nil {
		return database.Classify(fmt.Errorf("read approval: %w", err))
	}
	if holding > 0 {
		return nil
	}
	return o.settle(ctx, t, e, Evidence{}, t.afterApproval)
}

// afterApproval chooses what follows for a queued effect whose approval holds no longer: it is withdrawn, or asked about and never sent
// again. That its time is over may be all there is to it.
func (t Target) afterApproval(e Effect, now time.Time) step {
	switch {
	case e.State != idempotency.Queued:
		return step{}
	case !t.maySend(e, now): // which is why, whatever else is so
		return t.afterLastSend(e, now)
	case e.inDoubt():
		return step{to: idempotency.Unknown, next: now, change: func(tx database.Tx) (bool, error) { return staleInDoubt(tx, e) }}
	}
	return step{to: idempotency.Canceled, reason: ByStaleness, change: func(tx database.Tx) (bool, error) { return unapproved(tx, e) }}
}

// staleInDoubt is the statement together with what becomes of the approval, which the effect's end will be told by.
func staleInDoubt(tx database.Tx, e Effect) (bool, error) {
	changed, err := unapprovedInDoubt(tx, e)
	if err != nil || !changed {
		return false, err
	}
	a, err := approval.Get(tx.DB, e.AccountID, e.ApprovalID)
	if err == nil {
		_, err = approval.End(tx, a, approval.Stale, saysStale)
	}
	return err == nil, err
}

// What is told of an operation that has ended for want of an approval, and of the approval.
const (
	saysExpired   = "The approval has expired: nobody had said yes, or it had not gone out, by then."
	saysStale     = "What was to be approved is not what is there now."
	saysWithdrawn = "The operation was withdrawn."
)

// endApproval ends the approval of an effect that has ended without it, and completes why. e is the effect as it is then, and has left
// the state from.
func (o *Outbox) endApproval(tx database.Tx, e Effect, from idempotency.State, end End) (End, error) {
	if e.ApprovalID == "" || end.Reason == ByRejection || end.State == idempotency.Succeeded {
		return end, nil
	}
	a, err := approval.Get(tx.DB, e.AccountID, e.ApprovalID)
	if err != nil {
		return end, err
	}
	switch {
	case end.Reason == ByExpiry && a.State == approval.Stale: // which had cut its time short
		end.Reason = ByStaleness
	case end.Reason == ByExpiry:
		if _, err = approval.End(tx, a, approval.Expired, saysExpired); err == nil {
			event := o.becomes(tx, e, idempotency.Expired, from, end.State, "")
			event.AttemptID, event.Fingerprint = "", a.Fingerprint
			err = o.record(tx, event)
		}
	case end.Reason == ByStaleness:
		_, err = approval.End(tx, a, approval.Stale, saysStale)
	case a.State == approval.Pending:
		_, err = approval.End(tx, a, approval.Stale, saysWithdrawn)
	}
	switch end.Reason {
	case ByExpiry:
		end.Evidence.Says = saysExpired
	case ByStaleness:
		end.Evidence.Says = saysStale
	}
	return end, err
}
