package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/einmal/einmal/pkg/catalogue"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

// Target is a system outside, and how it is treated.
type Target struct {
	Name     string
	Types    []string // of the operations whose effects it has; each is in the catalogue
	Ability  Ability
	Provider Provider

	// Settle writes the domain row of an effect that has ended, and returns the operation's final answer. It is called in the
	// transaction that ends the effect, once.
	Settle func(tx database.Tx, e Effect, end End) (idempotency.Answer, error)

	// Lock is of a target whose effects each hold one; nil: of none.
	Lock *Lock

	// World returns the version of what a person is shown beside the command when they are asked whether an effect may go out: an
	// approval holds while it is the same. It is compared in the transaction of the answer and of every take, after the statement
	// that decides, so it must rest on what cannot change until that transaction ends. When the question is put, the rows of the
	// effect's own operation may not be there yet. Nil: the command says it all.
	World func(tx database.Tx, e Effect) (string, error)

	// Approved is called in the transaction in which a person lets an effect go out, which is queued then: it makes it due (Turn), lets
	// it wait for its turn, or refuses it (Refuse). Nil: it is due.
	Approved func(tx database.Tx, e Effect) error

	Timeout     time.Duration // of one call
	Lease       time.Duration // whom not to disturb; longer than Timeout
	MaxAttempts int           // sends of one effect
	LongestWait time.Duration // between two of them; 0: half a minute. With MaxAttempts it says how long a target may be down
	MaxAsks     int           // look-ups in a row that find nothing, before a person is asked
	AskEvery    time.Duration // between a send whose outcome is unknown and the first look, and the least between looks

	// FollowEvery is how soon what the target has accepted is asked after, and the least between such questions, which come ever less
	// often the longer it goes on. 0: every AskEvery, however long that is.
	FollowEvery time.Duration

	// What of each kind may be under way. They are apart, so that a storm of sends takes no place from looks, nor from sends of
	// the types that the catalogue marks.
	Sends, PrioritySends, Asks Limit
}

// Limit bounds the calls of one kind that this process makes to a target.
type Limit struct {
	Places    int     // at once
	PerSecond float64 // begun; 0: as many as there are
}

// Provider calls a target. Each method makes one call that ends with ctx, without repeating anything by itself, and says what it
// observed. Of Lookup and Close only those are called that the target's ability declares.
type Provider interface {
	Send(ctx context.Context, e Effect) Evidence
	Lookup(ctx context.Context, e Effect) Evidence
	Close(ctx context.Context, e Effect) Evidence
}

// End is how an effect ended.
type End struct {
	State    idempotency.State // succeeded, failed or canceled
	Reason   Reason            // why, if it did not succeed
	Evidence Evidence
}

// Reason says why an effect did not succeed.
type Reason string

const (
	ByVerdict   Reason = "verdict"   // the target refused it
	ByRefusal   Reason = "refusal"   // the target would not have it
	ByExhausted Reason = "exhausted" // no send was possible within the attempts
	ByDeadline  Reason = "deadline"  // it had certainly not happened when its deadline passed
	ByClosing   Reason = "closing"   // it was closed before it took effect
	ByPerson    Reason = "person"    // a person decided
	ByStop      Reason = "stop"      // it was broken off while it went on

	// The next three are the codes of their problems.
	ByRejection Reason = "approval-rejected" // a person said no
	ByExpiry    Reason = "approval-expired"  // nobody said yes in time, or it did not go out in time after that
	ByStaleness Reason = "approval-stale"    // what they were shown is not what is there now
)

// Unapproved reports whether an effect has ended for want of an approval. What is to be told stands in the evidence.
func (end End) Unapproved() bool {
	return end.Reason == ByRejection || end.Reason == ByExpiry || end.Reason == ByStaleness
}

// check reports what is wrong with a target's settings.
func (t Target) check() error {
	wrong := ""
	switch {
	case t.Provider == nil || t.Settle == nil:
		wrong = "it needs a provider and a way to settle"
	case t.Timeout <= 0 || t.Lease <= t.Timeout:
		wrong = fmt.Sprintf("the lease (%s) must be longer than a call (%s)", t.Lease, t.Timeout)
	case t.Ability.Key && t.Ability.KeyWindow <= t.Timeout:
		wrong = fmt.Sprintf("a key window of %s is over before a call is", t.Ability.KeyWindow)
	case t.Ability.Floor && !t.Ability.Close:
		wrong = "a floor is a way to close"
	case t.MaxAttempts < 1 || t.MaxAsks < 1 || t.AskEvery <= 0:
		wrong = "it needs attempts, looks, and a time between looks"
	case t.Lock != nil && (t.Lock.Draw == nil || t.Lock.Read == nil || t.Lock.Learn == nil || t.Lock.MayDecide == nil):
		wrong = "a lock is all of its functions"
	case t.Sends.Places < 1 || t.PrioritySends.Places < 1 || t.Asks.Places < 1:
		wrong = "it needs places for sends, for sends with priority and for looks"
	}
	if wrong != "" {
		return fmt.Errorf("configure target %s: %s", t.Name, wrong)
	}
	return catalogue.CheckEffects(t.Name, t.Types)
}

// sendBy is the last moment for a send that is taken now to begin: it must end within the lease, before its deadline, while its approval is valid, if
// it needs one, and, where the target knows it by its key, within the window in which the target remembers that, counted from the first send.
func (t Target) sendBy(e Effect, now time.Time) time.Time {
	end := now.Add(t.Lease)
	if e.ApprovedUntil != nil && e.ApprovedUntil.Before(end) {
		end = *e.ApprovedUntil
	}
	if e.Deadline != nil && e.Deadline.Before(end) {
		end = *e.Deadline
	}
	if t.Ability.Key {
		first := now
		if e.FirstSentAt != nil {
			first = *e.FirstSentAt
		}
		if forgotten := first.Add(t.Ability.KeyWindow); forgotten.Before(end) {
			end = forgotten
		}
	}
	return end.Add(-t.Timeout)
}

// tooLate reports whether a send that begins now would not end before the deadline.
func (t Target) tooLate(e Effect, now time.Time) bool {
	return e.Deadline != nil && !now.Before(e.Deadline.Add(-t.Timeout))
}

// whyNoMore is why an effect of which it is certain that nothing has happened is not sent any more: otherwise is the reason if it isn't
// the deadline.
func (t Target) whyNoMore(e Effect, now time.Time, otherwise Reason) Reason {
	if e.Attempts < t.MaxAttempts && t.tooLate(e, now) {
		return ByDeadline
	}
	return otherwise
}

// maySend reports whether one more send is allowed.
func (t Target) maySend(e Effect, now time.Time) bool {
	return e.Attempts < t.MaxAttempts && e.CancelAskedAt == nil && (!e.inDoubt() || t.Ability.Key) && now.Before(t.sendBy(e, now))
}

// mustClose reports whether asking has to begin with closing: where the target can close and has no keys, or no send by key may
// follow any more, or a floor lets one follow that is the only one that can still arrive. Then the answer is conclusive.
func (t Target) mustClose(e Effect, now time.Time) bool {
	resent := t.Ability.Floor && e.whileAsked() == idempotency.Unknown
	return t.Ability.Close && (!t.Ability.Key || resent || !t.maySend(e, now))
}
