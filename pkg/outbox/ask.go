package outbox

import (
	"context"
	"time"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

// ask takes an effect whose outcome nobody has settled, asks the target, and settles what that has shown.
func (o *Outbox) ask(ctx context.Context, t Target, e Effect) error {
	kind := t.howToAsk(e, o.db.Now())
	var token int64
	taken, _, err := o.take(ctx, t, e, kind, t.taking(e, &token, highest, func(tx database.Tx, by string) (bool, error) { return takeToAsk(tx, e, t, by) }))
	if err != nil || taken == nil {
		return err
	}
	taken.Token = token
	evidence := Evidence{Finding: Ambiguous, Says: "this target can't be asked"}
	if e.State == idempotency.Running {
		evidence.Says = "whoever was sending has not said what came of it, their process may have died; " + evidence.Says
	}
	switch kind {
	case kindClose:
		evidence = o.call(ctx, t, *taken, t.Provider.Close)
	case kindLookup:
		evidence = o.call(ctx, t, *taken, t.Provider.Lookup)
	}
	return o.settle(ctx, t, *taken, evidence, func(e Effect, now time.Time) step {
		s := t.afterAsk(e, kind, evidence, now)
		s.byAsking = kind != ""
		return s
	})
}

// howToAsk is the kind of call that asks about an effect: close, lookup, or none.
func (t Target) howToAsk(e Effect, now time.Time) string {
	switch {
	case t.mustClose(e, now):
		return kindClose
	case t.Ability.Lookup:
		return kindLookup
	}
	return ""
}

// afterAsk chooses what follows from what asking has shown.
func (t Target) afterAsk(e Effect, kind string, ev Evidence, now time.Time) step {
	finding := ev.Finding
	if kind == "" {
		finding = NotFound // from nobody: what follows is the same
	}
	switch finding {
	case Confirmed:
		return ifKeyIsOwn(e, succeeds(e, ev))
	case Verdict:
		return ifKeyIsOwn(e, failsByVerdict(e))
	case Accepted:
		return t.goesOn(e, ev, now)
	case Different:
		return toPersonAsDifferent(e, ev)
	case Stopped:
		return ifKeyIsOwn(e, endsStopped(e))
	case Reused:
		return toPersonAsReused(e)
	case Closed:
		if kind == kindClose {
			return t.afterClosing(e, ev.pause(), now)
		}
	case NotFound:
		unknown := e.whileAsked() == idempotency.Unknown
		switch {
		case kind == kindClose: // not conclusive, so it is none of the answers of a close
		case unknown && t.Ability.Key && t.maySend(e, now):
			next := notBefore(t.resendAt(e, now), now.Add(ev.pause()))
			return step{to: idempotency.Queued, next: next, change: func(tx database.Tx) (bool, error) { return requeue(tx, e, next) }}
		case t.mustClose(e, now): // since it was looked up: a cancel, or the end of the key window
		case !t.Ability.canAsk():
			s := toPerson(e)
			s.askPerson = e.ReviewID == "" // that nobody was asked is no news
			return s
		case e.Asks >= t.MaxAsks && !unknown: // what it had accepted it does not know any more
			return toPerson(e)
		}
	}
	// Nothing was learned. When that goes on, a person is told, and the target is asked all the same: it may only be down, or late.
	next := now.Add(max(t.AskEvery, backoff(e.Asks, longestWait, ev.RetryAfter)))
	if finding == NotFound && e.Asks >= t.MaxAsks && !t.mustClose(e, now) {
		next = notBefore(next, now.Add(whileAPersonIsAsked))
	}
	return step{
		to: e.State, next: next, askPerson: e.Asks >= t.MaxAsks && e.ReviewID == "",
		change: func(tx database.Tx) (bool, error) { return askLater(tx, e, next) },
	}
}

// afterClosing follows a close that came before any effect: it is certain that none has happened and that no earlier send can
// arrive.
func (t Target) afterClosing(e Effect, pause time.Duration, now time.Time) step {
	s := step{to: idempotency.Failed, reason: t.whyNoMore(e, now, ByClosing)}
	switch {
	case e.CancelAskedAt != nil:
		s.to = idempotency.Canceled
	case e.approvalOver(now):
		s.to, s.reason = idempotency.Canceled, ByExpiry
	case t.Ability.Floor && e.Attempts < t.MaxAttempts && !t.tooLate(e, now):
		s = step{to: idempotency.Queued, next: notBefore(t.resendAt(e, now), now.Add(pause))}
	}
	s.change = func(tx database.Tx) (bool, error) { return closed(tx, e, s.to, s.next) }
	return s
}
