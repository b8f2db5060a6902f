package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/review"
)

// settleTries bounds how often recording evidence is tried in one go. What is not recorded then is not lost: the lease ends, and
// the target is asked.
const settleTries = 5

// step is what follows from evidence: one row of the protocol's table. Choosing it changes nothing yet.
type step struct {
	to        idempotency.State
	reason    Reason                             // of an end that is no success
	next      time.Time                          // when it is due by itself; zero: not at all
	askPerson bool                               // a person is told
	byAsking  bool                               // the target was asked, not sent to
	change    func(tx database.Tx) (bool, error) // the row's statement; nil: nothing follows
}

func succeeds(e Effect, ev Evidence) step {
	return step{to: idempotency.Succeeded, change: func(tx database.Tx) (bool, error) { return happened(tx, e, ev.Reference) }}
}

func failsByVerdict(e Effect) step {
	return step{to: idempotency.Failed, reason: ByVerdict, change: func(tx database.Tx) (bool, error) { return verdict(tx, e) }}
}

func endsStopped(e Effect) step {
	return step{to: idempotency.Canceled, reason: ByStop, change: func(tx database.Tx) (bool, error) { return stopped(tx, e) }}
}

func (t Target) goesOn(e Effect, ev Evidence, now time.Time) step {
	next := now.Add(t.followAfter(e, now))
	return step{to: idempotency.Running, next: next, change: func(tx database.Tx) (bool, error) { return accepted(tx, e, ev.Reference, next) }}
}

func toPerson(e Effect) step {
	return step{to: idempotency.Unknown, askPerson: true, change: func(tx database.Tx) (bool, error) { return unknownForGood(tx, e) }}
}

func toPersonAsDifferent(e Effect, ev Evidence) step {
	return step{to: idempotency.Unknown, askPerson: true, change: func(tx database.Tx) (bool, error) { return different(tx, e, ev.Shows) }}
}

// settle is the one way from evidence to rows: the step that follows, the attempt, and, when the step has ended the effect, the
// domain row and the operation's answer, in one transaction. Repeating it after a lost COMMIT is safe, since every step is a
// compare-and-set: the repetition finds that nothing is left to do.
func (o *Outbox) settle(ctx context.Context, t Target, taken Effect, ev Evidence, choose func(e Effect, now time.Time) step) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.Lease)
	defer cancel()
	for try := 1; ; try++ {
		var s step
		err := o.db.InTx(ctx, func(tx database.Tx) error {
			known, err := hold(tx, taken)
			if err != nil {
				return err
			}
			s = choose(current(taken, *known), tx.Now)
			return o.follow(tx, t, taken, *known, ev, s)
		})
		switch {
		case err == nil:
			o.changed.of(taken.OperationID).broadcast()
			if !s.next.IsZero() || t.Lock != nil && s.to.Final() {
				o.Nudge() // it may be due before what the lanes wait for, or somebody has waited for its lock
			}
			return nil
		case try == settleTries || ctx.Err() != nil || !transient(err):
			return fmt.Errorf("settle %s: %w", taken.ID, err)
		}
		wait(ctx, backoff(try, longestWait, 0))
	}
}

// current is an effect as it is known, if nobody has taken or released it since: others may have added the wish to cancel. If
// somebody has, it is as it was taken, and what is learned meets another fence.
func current(taken, known Effect) Effect {
	if known.Fence == taken.Fence && known.LeasedBy == taken.LeasedBy {
		return known
	}
	return taken
}

// follow takes the step. known is the effect as it is before, held.
func (o *Outbox) follow(tx database.Tx, t Target, taken, known Effect, ev Evidence, s step) error {
	changed := false
	if s.change != nil {
		var err error
		if changed, err = s.change(tx); err != nil {
			return err
		}
	}
	if err := t.learn(tx, known, ev); err != nil {
		return fmt.Errorf("learn of lock: %w", err)
	}
	if err := endAttempt(tx, taken, ev); err != nil {
		return err
	}
	if err := o.compare(tx, known, ev); err != nil || !changed { // somebody was faster, and it is as they have left it
		return err
	}
	if s.byAsking && s.to != known.State {
		if err := o.record(tx, o.becomes(tx, taken, idempotency.Reconciled, known.State, s.to, ev.Reference)); err != nil {
			return err
		}
	}
	if s.to.Final() {
		return o.finish(tx, t, known, End{State: s.to, Reason: s.reason, Evidence: ev})
	}
	if pause := ev.pause(); pause > 0 {
		if err := leftAlone(tx, known, tx.Now.Add(pause)); err != nil {
			return err
		}
	}
	if s.askPerson {
		if err := o.askPerson(tx, known, ev); err != nil {
			return err
		}
	}
	return o.note(tx, taken, known, ev, s.to)
}

// finish ends the operation together with its effect. e is the effect as it was before.
func (o *Outbox) finish(tx database.Tx, t Target, e Effect, end End) error {
	from := e.State
	e.State = end.State
	if e.Reference == "" {
		e.Reference = end.Evidence.Reference
	}
	end, err := o.endApproval(tx, e, from, end)
	if err != nil {
		return err
	}
	answer, err := t.Settle(tx, e, end)
	if err != nil {
		return fmt.Errorf("settle domain row: %w", err)
	}
	op, err := o.exec.RowByKey(tx, e.AccountID, e.IdempotencyKey)
	if err != nil {
		return err
	}
	op.Effect = &idempotency.Effect{Key: e.EffectKey, Reference: e.Reference} // which the end of it is proven to have come from
	if err := review.ResolveFor(tx, e.AccountID, e.OperationID, review.LaterEvidence); err != nil {
		return err
	}
	return o.exec.Settle(tx, op, from, answer)
}

// compare holds evidence against what is known. What contradicts it opens a review, and frees nothing.
func (o *Outbox) compare(tx database.Tx, known Effect, ev Evidence) error {
	says := contradiction(known, ev)
	if says == "" {
		return nil
	}
	_, err := review.Open(tx, review.Question{
		AccountID: known.AccountID, Kind: review.Contradiction, OperationID: known.OperationID, Type: known.Type,
		Evidence: []review.Evidence{{Source: known.Target, At: tx.Now, Says: says}},
	})
	return err
}

// contradiction says what evidence has against what is known of an effect; empty: nothing. A negative that came too late has
// nothing against it.
func contradiction(known Effect, ev Evidence) string {
	positive := ev.Finding == Confirmed || ev.Finding == Accepted
	withdrawn := known.State == idempotency.Failed || known.State == idempotency.Canceled
	switch {
	case ev.Finding == Reused:
		return fmt.Sprintf("%s (%s): the target has answered another command under this effect key, so what it shows under that may be somebody else's", ev.Finding, ev.Says)
	case len(ev.More) > 0:
		return fmt.Sprintf("%s (%s): one effect key, and %d effects, %q and %q", ev.Finding, ev.Says, 1+len(ev.More), ev.Reference, ev.More)
	case positive && withdrawn, (ev.Finding == Verdict || ev.Finding == Stopped) && known.State == idempotency.Succeeded:
		return fmt.Sprintf("%s (%s; reference %q), although the operation has %s", ev.Finding, ev.Says, ev.Reference, known.State)
	case positive && ev.Reference != "" && known.Reference != "" && ev.Reference != known.Reference:
		return fmt.Sprintf("%s (%s) with reference %q, although it is known as %q", ev.Finding, ev.Says, ev.Reference, known.Reference)
	}
	return ""
}

// askPerson tells a person about an effect, with what is known. How often it was looked up is not part of that: somebody who keeps
// asking would add to the review for ever.
func (o *Outbox) askPerson(tx database.Tx, e Effect, ev Evidence) error {
	kind, says := review.Unknown, fmt.Sprintf("%s after %s: %s", ev.Finding, counted(e.Attempts, "send"), ev.Says)
	if ev.Finding == Reused {
		kind, says = review.Contradiction, contradiction(e, ev) // which is the question already
	}
	id, err := review.Open(tx, review.Question{
		AccountID: e.AccountID, Kind: kind, OperationID: e.OperationID, Type: e.Type,
		Evidence: []review.Evidence{{Source: e.Target, At: tx.Now, Says: says}},
	})
	if err != nil {
		return err
	}
	if err := rowOf(e, tx.AtCommit()).Table("effects").UpdateColumn("review_id", id).Error; err != nil {
		return fmt.Errorf("note review: %w", err)
	}
	return nil
}

// counted is a number of things.
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// note records a step that did not end the effect, if it has changed anything that others see.
func (o *Outbox) note(tx database.Tx, taken, known Effect, ev Evidence, to idempotency.State) error {
	types := map[idempotency.State]idempotency.EventType{
		idempotency.Queued: idempotency.QueuedEvent, idempotency.Running: idempotency.AcceptedEvent, idempotency.Unknown: idempotency.UnknownEvent,
	}
	if to == known.State && (to != idempotency.Running || known.AcceptedAt != nil) {
		return nil
	}
	return o.record(tx, o.becomes(tx, taken, types[to], known.State, to, ev.Reference))
}

// transient reports whether a transaction that failed may be run again.
func transient(err error) bool {
	return errors.Is(err, database.ErrCommitUnknown) || errors.Is(err, database.ErrUnavailable) ||
		errors.Is(err, database.ErrBusy) || errors.Is(err, database.ErrSerialization)
}

// wait pauses, unless ctx ends first.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
