package outbox

import (
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/einmal/einmal/pkg/approval"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/review"
)

// Each function here is one row of the table in docs/protocol.md, "The effect row": a compare-and-set on the effect that e was
// read as. It reports whether the row was changed; if not, somebody was faster: read again, decide again.

// takeToSend commits that a byte may leave. Every condition of a send is checked here, in this statement, and nowhere else.
func takeToSend(tx database.Tx, e Effect, t Target, by string) (bool, error) {
	where := tx.Where("state = ? AND next_at <= ? AND attempts < ? AND cancel_asked_at IS NULL AND (deadline IS NULL OR deadline > ?)",
		idempotency.Queued, tx.Now, t.MaxAttempts, tx.Now.Add(t.Timeout))
	if t.Ability.Key {
		where = where.Where("(first_sent_at IS NULL OR first_sent_at > ?)", tx.Now.Add(t.Timeout-t.Ability.KeyWindow))
	} else {
		where = where.Where("doubt IS NULL")
	}
	where = where.Where("approval_id = ?", e.ApprovalID)
	if e.ApprovalID != "" {
		until := tx.Now.Add(t.Timeout) // the call has ended by then
		where = where.Where("approved_until > ?", until).Where(approval.Holds, until)
	}
	lease := tx.Now.Add(t.Lease)
	return change(tx, e, where, map[string]any{
		"state": idempotency.Running, "fence": gorm.Expr("fence + 1"), "doubt": gorm.Expr("coalesce(doubt, fence + 1)"),
		"first_sent_at": gorm.Expr("coalesce(first_sent_at, ?)", tx.Now), "leased_by": by, "lease_until": lease, "send_by": t.sendBy(e, tx.Now),
		"next_at": lease, "attempts": gorm.Expr("attempts + 1"), "asks": 0,
	})
}

// notSent puts back a send that had no effect, when no earlier one is in doubt.
func notSent(tx database.Tx, e Effect, next time.Time) (bool, error) {
	return change(tx, e, tx.Where("state = ? AND doubt = ?", idempotency.Running, e.Fence), released(map[string]any{
		"state": idempotency.Queued, "doubt": nil, "next_at": next,
	}))
}

// notSentInDoubt does so when an earlier send may still arrive: unknown, or queued where the next send carries the same key and nobody
// can be asked before.
func notSentInDoubt(tx database.Tx, e Effect, state idempotency.State, next time.Time) (bool, error) {
	return change(tx, e, tx.Where("state = ? AND doubt < ?", idempotency.Running, e.Fence), released(map[string]any{"state": state, "next_at": next}))
}

// refused ends an effect that the target won't have, when no earlier send is in doubt.
func refused(tx database.Tx, e Effect) (bool, error) {
	return change(tx, e, tx.Where("state = ? AND doubt = ?", idempotency.Running, e.Fence), ended(idempotency.Failed, nil))
}

// verdict ends an effect by a refusal that the target keeps under our effect key: evidence whatever the fence.
func verdict(tx database.Tx, e Effect) (bool, error) {
	return changeAnyFence(tx, e, ended(idempotency.Failed, nil))
}

// ambiguous makes a send unknown that may or may not have taken effect.
func ambiguous(tx database.Tx, e Effect, next time.Time) (bool, error) {
	return change(tx, e, tx.Where("state = ?", idempotency.Running), released(map[string]any{"state": idempotency.Unknown, "next_at": next}))
}

// accepted notes that it goes on at the target.
func accepted(tx database.Tx, e Effect, reference string, next time.Time) (bool, error) {
	return change(tx, e, tx.Where("state IN ?", []idempotency.State{idempotency.Running, idempotency.Unknown}), released(map[string]any{
		"state": idempotency.Running, "accepted_at": gorm.Expr("coalesce(accepted_at, ?)", tx.Now), "reference": keepFirst(reference),
		"next_at": next, "asks": 0,
	}))
}

// learned notes what the target calls that which a send is about to move, while whoever sends still holds the effect. Otherwise it
// must make no further call: somebody else may have learned another name, and would move that too.
func learned(tx database.Tx, e Effect, reference string) (bool, error) {
	return change(tx, e, tx.Where("state = ? AND (reference = '' OR reference = ?)", idempotency.Running, reference), map[string]any{"reference": reference})
}

// happened ends an effect by positive evidence: from anywhere, whatever the fence.
func happened(tx database.Tx, e Effect, reference string) (bool, error) {
	return changeAnyFence(tx, e, ended(idempotency.Succeeded, map[string]any{"reference": keepFirst(reference)}))
}

// stopped ends an effect that its target confirms to be broken off: from anywhere, whatever the fence.
func stopped(tx database.Tx, e Effect) (bool, error) {
	return changeAnyFence(tx, e, ended(idempotency.Canceled, nil))
}

// approve lets an effect go on that a person has said yes to: it is due then, or when its turn comes (nil). The answer is noted in the
// same transaction.
func approve(tx database.Tx, e Effect, due *time.Time) (bool, error) {
	return change(tx, e, tx.Where("state = ?", idempotency.AwaitingApproval), map[string]any{"state": idempotency.Queued, "next_at": due})
}

// unapproved withdraws what a person has said no to, or whose approval is not valid any more, and what has certainly not been sent.
func unapproved(tx database.Tx, e Effect) (bool, error) {
	return change(tx, e, tx.Where("(state = ? OR (state = ? AND doubt IS NULL))", idempotency.AwaitingApproval, idempotency.Queued).Where("approval_id <> ''"),
		ended(idempotency.Canceled, nil))
}

// unapprovedInDoubt makes it unknown while an earlier send is in doubt: nothing is sent any more, and it is due to be asked about.
func unapprovedInDoubt(tx database.Tx, e Effect) (bool, error) {
	return change(tx, e, tx.Where("state = ? AND doubt IS NOT NULL AND approval_id <> ''", idempotency.Queued), released(map[string]any{
		"state": idempotency.Unknown, "next_at": tx.Now, "approved_until": gorm.Expr("CASE WHEN approved_until < ? THEN approved_until ELSE ? END", tx.Now, tx.Now),
	}))
}

// turn makes an effect due that has waited for its turn.
func turn(tx database.Tx, e Effect) (bool, error) {
	return change(tx, e, tx.Where("state = ? AND next_at IS NULL", idempotency.Queued), map[string]any{"next_at": tx.Now})
}

// takeToAsk raises the fence before anybody asks, so that what is learned settles only if nobody has sent or asked meanwhile.
// What was accepted stays running. A look that follows another sooner than any does by itself is not counted: somebody keeps asking,
// and an index that lags, or a request on its way, has had no time.
func takeToAsk(tx database.Tx, e Effect, t Target, by string) (bool, error) {
	where := tx.Where("state = ? AND state IN ? AND next_at <= ? AND (lease_until IS NULL OR lease_until <= ?)",
		e.State, []idempotency.State{idempotency.Running, idempotency.Unknown}, tx.Now, tx.Now)
	lease := tx.Now.Add(t.Lease)
	set := map[string]any{
		"state": e.whileAsked(), "fence": gorm.Expr("fence + 1"), "leased_by": by, "lease_until": lease, "send_by": nil, "next_at": lease,
	}
	if t.howToAsk(e, tx.Now) != "" {
		set["asks"] = gorm.Expr(`asks + CASE WHEN EXISTS (SELECT 1 FROM attempts a WHERE a.account_id = effects.account_id
			AND a.operation_id = effects.operation_id AND a.kind <> ? AND a.ended_at > ?) THEN 0 ELSE 1 END`, kindSend, tx.Now.Add(-t.AskEvery))
	}
	return change(tx, e, where, set)
}

// closed ends, or re-queues, an effect of which it is certain that nothing happened and that no earlier send can arrive. Asked to
// cancel, it can only be canceled.
func closed(tx database.Tx, e Effect, state idempotency.State, next time.Time) (bool, error) {
	where, set := takenToAsk(tx), ended(state, nil)
	if state != idempotency.Canceled {
		where = where.Where("cancel_asked_at IS NULL")
	}
	if state == idempotency.Queued {
		set["next_at"] = next
	}
	return change(tx, e, where, set)
}

// requeue sends again under the same key what the target has not found.
func requeue(tx database.Tx, e Effect, next time.Time) (bool, error) {
	return change(tx, e, tx.Where("state = ?", idempotency.Unknown), released(map[string]any{"state": idempotency.Queued, "next_at": next}))
}

// askLater keeps an effect unknown (or running, if accepted) until the next look.
func askLater(tx database.Tx, e Effect, next time.Time) (bool, error) {
	return change(tx, e, takenToAsk(tx), released(map[string]any{"next_at": next}))
}

// unknownForGood leaves an effect to a person: nothing takes it by itself any more.
func unknownForGood(tx database.Tx, e Effect) (bool, error) {
	return change(tx, e, tx.Where("state IN ?", []idempotency.State{idempotency.Running, idempotency.Unknown}),
		released(map[string]any{"state": idempotency.Unknown, "next_at": nil}))
}

// different notes what a target shows that is not what was asked for.
func different(tx database.Tx, e Effect, shown string) (bool, error) {
	return change(tx, e, tx.Where("state IN ?", []idempotency.State{idempotency.Running, idempotency.Unknown}),
		released(map[string]any{"state": idempotency.Unknown, "next_at": nil, "shown": shown}))
}

// sendsExhausted ends a queued effect that may not be sent any more, when no send is in doubt, and it was not asked to cancel.
func sendsExhausted(tx database.Tx, e Effect) (bool, error) {
	return change(tx, e, tx.Where("state = ? AND doubt IS NULL AND cancel_asked_at IS NULL", idempotency.Queued), ended(idempotency.Failed, nil))
}

// noMoreSends makes a queued effect unknown that may not be sent any more while an earlier send is in doubt: it is due to be
// asked about.
func noMoreSends(tx database.Tx, e Effect) (bool, error) {
	return change(tx, e, tx.Where("state = ? AND doubt IS NOT NULL", idempotency.Queued),
		released(map[string]any{"state": idempotency.Unknown, "next_at": tx.Now}))
}

// overdue notes that an effect is open past its deadline of which it is not certain that nothing has happened. Whoever holds it goes on.
func overdue(tx database.Tx, e Effect) (bool, error) {
	return update(tx, rowOf(e, tx.DB).Where("state IN ? AND deadline <= ? AND overdue_at IS NULL",
		[]idempotency.State{idempotency.Running, idempotency.Unknown}, tx.Now), map[string]any{"overdue_at": tx.Now})
}

// cancel withdraws what has certainly not been sent.
func cancel(tx database.Tx, e Effect) (bool, error) {
	return change(tx, e, tx.Where("(state = ? OR (state = ? AND doubt IS NULL))", idempotency.AwaitingApproval, idempotency.Queued),
		ended(idempotency.Canceled, map[string]any{"cancel_asked_at": gorm.Expr("coalesce(cancel_asked_at, ?)", tx.Now)}))
}

// askToCancel notes the wish on what may have been sent, whoever holds it. Nothing is sent any more, and the next look closes.
func askToCancel(tx database.Tx, e Effect) (bool, error) {
	return changeAnyFence(tx, e, map[string]any{"cancel_asked_at": gorm.Expr("coalesce(cancel_asked_at, ?)", tx.Now)})
}

// askAnew begins to count anew what asking has not shown, where whoever was asked has answered: the next to be told is a new question.
func askAnew(tx database.Tx, e Effect) error {
	_, err := update(tx, rowOf(e, tx.DB).Where(`NOT EXISTS (SELECT 1 FROM reviews r
		WHERE r.account_id = effects.account_id AND r.id = effects.review_id AND r.state = ?)`, review.StateOpen), map[string]any{"review_id": "", "asks": 0})
	return err
}

// decide is a person's word about an unknown effect. It raises the fence, so that nothing learned before counts after it.
func decide(tx database.Tx, e Effect, state idempotency.State, reference string) (bool, error) {
	set := ended(state, map[string]any{"fence": gorm.Expr("fence + 1")})
	if reference != "" {
		set["reference"] = reference
	}
	return change(tx, e, tx.Where("state = ? AND (lease_until IS NULL OR lease_until <= ?)", idempotency.Unknown, tx.Now), set)
}

// askNow makes an effect due whose key is its own, without disturbing a live lease: at once, or when the target has had the peace that it
// asked for.
func askNow(tx database.Tx, e Effect) (bool, error) {
	return change(tx, e, tx.Where("state IN ? AND (lease_until IS NULL OR lease_until <= ?)",
		[]idempotency.State{idempotency.Running, idempotency.Unknown}, tx.Now).Where(notReused), map[string]any{
		"next_at": gorm.Expr("CASE WHEN quiet_until > ? THEN quiet_until ELSE ? END", tx.Now, tx.Now),
	})
}

// leftAlone notes until when the target of an open effect wants no call about it.
func leftAlone(tx database.Tx, e Effect, until time.Time) error {
	_, err := update(tx, rowOf(e, tx.DB), map[string]any{"quiet_until": until})
	return err
}

// takenToAsk is the condition of an effect that somebody has taken to ask about.
func takenToAsk(tx database.Tx) *gorm.DB {
	return tx.Where("(state = ? OR (state = ? AND accepted_at IS NOT NULL))", idempotency.Unknown, idempotency.Running)
}

// keepFirst keeps a reference that is known: a second one is evidence of a second effect, not a better name.
func keepFirst(reference string) any {
	return gorm.Expr("CASE WHEN reference = '' THEN ? ELSE reference END", reference)
}

// change is a compare-and-set under the fence that e was read with, by whoever held it then: releasing an effect keeps its fence,
// and must not happen twice.
func change(tx database.Tx, e Effect, where *gorm.DB, set map[string]any) (bool, error) {
	return update(tx, rowOf(e, where).Where("fence = ? AND leased_by = ?", e.Fence, e.LeasedBy), set)
}

// changeAnyFence is one under any fence, for what stays true whoever has taken the effect meanwhile.
func changeAnyFence(tx database.Tx, e Effect, set map[string]any) (bool, error) {
	open := []idempotency.State{idempotency.Queued, idempotency.Running, idempotency.Unknown}
	return update(tx, rowOf(e, tx.DB).Where("state IN ?", open), set)
}

// rowOf restricts statements to one effect. Its own id and its operation's name the same row: with both, PostgreSQL finds it by
// whichever unique index it takes. Without statistics, and so in a service's first minute, it takes the newest that begins with the
// account, and by one of the ids alone would read all effects of the account (measured: 2 ms a statement among 3000).
func rowOf(e Effect, db *gorm.DB) *gorm.DB {
	return db.Where("account_id = ? AND id = ? AND operation_id = ?", e.AccountID, e.ID, e.OperationID)
}

func update(tx database.Tx, where *gorm.DB, set map[string]any) (bool, error) {
	set["updated_at"] = tx.Now
	result := where.Table("effects").UpdateColumns(set)
	if result.Error != nil {
		return false, fmt.Errorf("change effect: %w", result.Error)
	}
	return result.RowsAffected == 1, nil
}

// released adds that nobody holds the effect any more.
func released(set map[string]any) map[string]any {
	set["leased_by"], set["lease_until"], set["send_by"] = "", nil, nil
	return set
}

// ended adds a state in which nobody holds the effect, nothing is due, and no send counts any more.
func ended(state idempotency.State, set map[string]any) map[string]any {
	if set == nil {
		set = map[string]any{}
	}
	set["state"], set["doubt"], set["next_at"] = state, nil, nil
	return released(set)
}
