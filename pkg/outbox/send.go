package outbox

import (
	"context"
	"errors"
	"time"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

// send takes an effect, makes one call, and settles what it has shown. Losing the take to somebody else is no error.
func (o *Outbox) send(ctx context.Context, t Target, e Effect) error {
	var token int64
	taken, started, err := o.take(ctx, t, e, kindSend, t.unchanged(e, t.taking(e, &token, draw, func(tx database.Tx, by string) (bool, error) { return takeToSend(tx, e, t, by) })))
	switch {
	case errors.Is(err, errNotAsShown):
		return o.settle(ctx, t, e, Evidence{}, t.afterApproval)
	case err != nil:
		return err
	case taken == nil && t.maySend(e, o.db.Now()):
		return o.lostTake(ctx, t, e)
	case taken == nil:
		return o.settle(ctx, t, e, Evidence{}, t.afterLastSend)
	}
	taken.Token = token
	evidence := Evidence{Finding: NotSent, Says: "the worker came too late to send under its lease"}
	if started.before(taken.SendBy) {
		evidence = o.call(ctx, t, *taken, t.Provider.Send)
	}
	o.sends.WithLabelValues(t.Name, string(evidence.Finding)).Inc()
	return o.settle(ctx, t, *taken, evidence, func(e Effect, now time.Time) step { return t.afterSend(e, evidence, now) })
}

// afterSend chooses what follows from what a send has shown.
func (t Target) afterSend(e Effect, ev Evidence, now time.Time) step {
	switch later := now.Add(backoff(e.Attempts, t.betweenSends(), ev.RetryAfter)); ev.Finding {
	case Confirmed:
		return succeeds(e, ev)
	case Verdict:
		return failsByVerdict(e)
	case Accepted:
		return t.goesOn(e, ev, now)
	case Different:
		return toPersonAsDifferent(e, ev)
	case Stopped:
		return endsStopped(e)
	case Reused:
		return toPersonAsReused(e)
	case Refused:
		if e.onlyDoubt() {
			return step{to: idempotency.Failed, reason: ByRefusal, change: func(tx database.Tx) (bool, error) { return refused(tx, e) }}
		}
		return t.staysInDoubt(e, later)
	case NotSent:
		if e.onlyDoubt() {
			if e.CancelAskedAt != nil {
				later = now // nothing will be sent that would have to wait
			}
			return step{to: idempotency.Queued, next: later, change: func(tx database.Tx) (bool, error) { return notSent(tx, e, later) }}
		}
		return t.staysInDoubt(e, later)
	default:
		if !t.Ability.canAsk() && !t.Ability.Key {
			return toPerson(e)
		}
		next := now.Add(max(t.AskEvery, ev.pause()))
		return step{to: idempotency.Unknown, next: next, change: func(tx database.Tx) (bool, error) { return ambiguous(tx, e, next) }}
	}
}

// staysInDoubt follows a send that had no effect while an earlier one may still arrive: who can be asked is asked again first, since
// by now it may have arrived.
func (t Target) staysInDoubt(e Effect, next time.Time) step {
	to := idempotency.Unknown
	if t.Ability.Key && !t.Ability.canAsk() {
		to = idempotency.Queued
	}
	return step{to: to, next: next, change: func(tx database.Tx) (bool, error) { return notSentInDoubt(tx, e, to, next) }}
}

// afterLastSend chooses what follows for a queued effect that may not be sent any more.
func (t Target) afterLastSend(e Effect, now time.Time) step {
	switch {
	case e.State != idempotency.Queued || t.maySend(e, now):
		return step{}
	case e.inDoubt():
		return step{to: idempotency.Unknown, next: now, change: func(tx database.Tx) (bool, error) { return noMoreSends(tx, e) }}
	case e.CancelAskedAt != nil:
		return step{to: idempotency.Canceled, reason: ByPerson, change: func(tx database.Tx) (bool, error) { return cancel(tx, e) }}
	case e.ApprovedUntil != nil && !now.Before(e.ApprovedUntil.Add(-t.Timeout)):
		return step{to: idempotency.Canceled, reason: ByExpiry, change: func(tx database.Tx) (bool, error) { return unapproved(tx, e) }}
	}
	return step{to: idempotency.Failed, reason: t.whyNoMore(e, now, ByExhausted), change: func(tx database.Tx) (bool, error) { return sendsExhausted(tx, e) }}
}
