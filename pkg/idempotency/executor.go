package idempotency

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/einmal/einmal/pkg/database"
)

// Options are the settings of an Executor. The zero value works.
type Options struct {
	// WaitBudget is how long a duplicate waits for the first attempt in this process before it is told that the operation is
	// in progress. Default 2 s: longer than nearly all local work, shorter than the patience of nearly all clients.
	WaitBudget time.Duration

	// WorkTimeout is the deadline of an attempt's own work, which does not end with its caller's connection. Default 10 s.
	WorkTimeout time.Duration

	// ResponseRetention is how long a final answer is replayed, from when it was stored. Default 30 days.
	ResponseRetention time.Duration

	// TombstoneRetention is how long after that a key is still known. Default 400 days. A UUIDv7 as key tells when it was made: one
	// that is older than both together, and of which nothing is known, has expired too.
	TombstoneRetention time.Duration

	// Forgotten tells up to which time, as it stands in a UUIDv7, keys were really forgotten; zero: none was. That is longer ago than
	// the two retentions, unless they were shorter once, or are in another replica. Nil: they never were.
	Forgotten func(ctx context.Context) (time.Time, error)

	// Record writes events in the transaction of what they tell; an error fails the transaction. Nil records nothing.
	Record func(tx database.Tx, events ...Event) error

	// Describe adds to operations of one account what is known of their effects (Operation.Effect), and puts the state of an
	// open one's effect in place of the row's, which changes only at the claim and when the operation settles. Nil adds nothing.
	Describe func(ctx context.Context, ops []Operation) error

	// Guard is asked before each attempt; an error refuses it, before anything is looked up. It is for a store that must not be written
	// although it could be (ErrRewound). Nil lets every attempt through.
	Guard func(ctx context.Context) error

	// Note takes the events of attempts that committed nothing: replayed, in_progress, conflict, expired, denied. It decides
	// itself when and how durably it writes them. Nil drops them.
	Note func(ctx context.Context, event Event)
}

// ErrRewound means that the store is older than what is known to have been in it, as after a restore from a backup. What was done since then is
// forgotten, so nothing may be done until a person has decided how to go on.
var ErrRewound = errors.New("store is older than what it was")

// Executor executes operations at most once. It is safe for concurrent use; several processes may share one database.
type Executor struct {
	db      *database.DB
	options Options
	flights flights
	seen    recent
	doubts  doubts
}

// New makes an Executor over a database that has the tables of migrations.Shared.
func New(db *database.DB, options Options) *Executor {
	if options.WaitBudget == 0 {
		options.WaitBudget = 2 * time.Second
	}
	if options.WorkTimeout == 0 {
		options.WorkTimeout = 10 * time.Second
	}
	if options.ResponseRetention == 0 {
		options.ResponseRetention = 30 * 24 * time.Hour
	}
	if options.TombstoneRetention == 0 {
		options.TombstoneRetention = 400 * 24 * time.Hour
	}
	if options.Forgotten == nil {
		options.Forgotten = func(context.Context) (time.Time, error) { return time.Time{}, nil }
	}
	if options.Record == nil {
		options.Record = func(database.Tx, ...Event) error { return nil }
	}
	if options.Describe == nil {
		options.Describe = func(context.Context, []Operation) error { return nil }
	}
	if options.Guard == nil {
		options.Guard = func(context.Context) error { return nil }
	}
	if options.Note == nil {
		options.Note = func(context.Context, Event) {}
	}
	return &Executor{db: db, options: options}
}

// Request is one attempt.
type Request struct {
	Key       Key
	Type      string // of the operation, as in the catalogue
	Command   Command
	Principal string
	AgentRun  string
	RequestID string
}

// Outcome is what an attempt met.
type Outcome string

const (
	OutcomeExecuted   Outcome = "executed"    // this attempt did it, now
	OutcomeAccepted   Outcome = "accepted"    // this attempt claimed it; its effect is to come
	OutcomeReplayed   Outcome = "replayed"    // an earlier attempt did; the stored answer
	OutcomeInProgress Outcome = "in_progress" // an earlier attempt has not got its final answer
	OutcomeConflict   Outcome = "conflict"    // the key names another command
	OutcomeExpired    Outcome = "expired"     // done, and the answer is past its retention; or the key is older than keys are remembered
	OutcomeRefused    Outcome = "refused"     // the business said no
)

// Result is what became of an attempt.
type Result struct {
	Outcome Outcome

	// Operation is the committed row. It is zero when there is none: in_progress while the first attempt's transaction is
	// open, conflict with such an attempt, refused for now, expired by the time that the key itself tells.
	Operation Operation

	// Answer is what to tell the caller when Outcome is executed, replayed or refused.
	Answer Answer
}

// Refusal is how apply says no. Whatever apply wrote vanishes in either case.
type Refusal struct {
	// Answer is what the caller is told.
	Answer Answer

	// Final refusals are stored and replayed (Answer.State is failed): the same key gets the same no for ever. Otherwise
	// nothing is stored, and the same key may be tried later.
	Final bool
}

func (r *Refusal) Error() string { return fmt.Sprintf("refused with status %d", r.Answer.Status) }

// store is the Apply that stores a final refusal and does nothing else.
func (r *Refusal) store(database.Tx, Operation) (Answer, error) {
	if r.Answer.State != Failed {
		return Answer{}, fmt.Errorf("store refusal: its state is %q, not %q", r.Answer.State, Failed)
	}
	return r.Answer, nil
}

// Apply does the work of an operation inside its claim's transaction: rows only, no call to anywhere. It may run more than once
// (a lost race, a lost COMMIT), each time after the rows of the time before have vanished; op.ID stays the same. It returns a
// final answer; or one in state queued or awaiting_approval for work with an effect outside; or a *Refusal; or any other error,
// which rolls back, stores nothing and is returned as it is.
type Apply func(tx database.Tx, op Operation) (Answer, error)

const (
	// maxRaces bounds how often one attempt runs its transaction again after the database ended it because of a concurrent
	// one. More losses in a row mean contention that no waiting within a request would cure.
	maxRaces = 2

	// racePause is about how long an attempt that lost a race lets the other one go on. At once it would take the same lock
	// again before that one has woken up, and lose again; with deadlocks, which take a second each, that was seen three times
	// in a row.
	racePause = 10 * time.Millisecond

	// maxLost bounds how often an attempt runs again after its connection was lost: nothing was committed, and the next connection
	// of the pool may be as dead as this one after a restart of the database. The pauses come to 0.6 s together. Where connecting
	// itself takes longer than lostPatience there is nothing to wait for.
	maxLost      = 4
	lostPause    = 10 * time.Millisecond
	lostPatience = time.Second

	// maxGone bounds how often a lost claim is tried again because what it lost against is not there. Once is enough to tell
	// a claim that has just been rolled back from one that is open in another process.
	maxGone = 1
)

// Do makes one attempt at an operation. The claim is first in its transaction, before anything that apply writes.
//
// The work does not end with ctx, only waiting for another attempt does: a caller that hangs up leaves either nothing or all of
// it. Errors wrap the sentinels of package database (ErrCommitUnknown: the operation may have been executed, by this attempt or by
// an earlier one that this process knows of; all others: it has not been, by this attempt) or ErrFingerprintVersion, or are apply's
// own.
func (x *Executor) Do(ctx context.Context, req Request, apply Apply) (Result, error) {
	a, err := x.newAttempt(req)
	if err != nil {
		return Result{}, err
	}
	result, err := x.do(ctx, a, apply)
	switch {
	case errors.Is(err, database.ErrCommitUnknown):
		x.doubts.add(a.identity) // a later attempt must not say that nothing was done
	case isStoreError(err) && (x.doubts.has(a.identity) || x.seen.has(a.identity)):
		return Result{}, fmt.Errorf("an earlier attempt may have executed it: %w: %w", database.ErrCommitUnknown, err)
	}
	if err == nil && result.Outcome == OutcomeAccepted && result.Operation.State == AwaitingApproval {
		// Whom to ask is part of the answer. It is committed all the same if that can't be read now.
		if op, err := x.shown(ctx, result.Operation); err == nil {
			result.Operation = op
		}
		return result, nil
	}
	met := result.Outcome == OutcomeInProgress || result.Outcome == OutcomeConflict
	if err != nil || !met || result.Operation.ID == "" {
		return result, err
	}
	result.Operation, err = x.shown(ctx, result.Operation)
	return result, err
}

func (x *Executor) do(ctx context.Context, a *attempt, apply Apply) (Result, error) {
	if err := x.options.Guard(ctx); err != nil {
		return Result{}, err
	}
	budget := time.NewTimer(x.options.WaitBudget)
	defer budget.Stop()

	old := x.old(a.Key)
	likelyKnown := old || x.seen.has(a.identity) || x.doubts.has(a.identity)
	for {
		if likelyKnown {
			result, found, err := x.lookUp(ctx, a)
			if found || err != nil {
				return result, err
			}
		}
		if old { // and not known: now, not before the look, since a key is forgotten together with its row
			switch forgotten, err := x.forgotten(ctx, a.Key); {
			case err != nil:
				return Result{}, err
			case forgotten:
				return x.met(ctx, a, OutcomeExpired, Operation{}), nil
			}
		}
		first, mine := x.flights.enter(a)
		if mine {
			return x.fly(ctx, a, apply)
		}
		conflict := first.won // a key that names two commands at once is a fault of its caller, whatever becomes of them
		if first.fingerprint == a.fingerprint {
			conflict = nil
		}
		// A waiter is woken, never answered: it makes its own attempt (docs/protocol.md rule 11).
		select {
		case <-conflict:
			return x.met(ctx, a, OutcomeConflict, Operation{}), nil
		case <-first.done:
		case <-ctx.Done():
			return Result{}, fmt.Errorf("wait for the first attempt: %w", database.Classify(ctx.Err()))
		case <-budget.C:
			return x.met(ctx, a, OutcomeInProgress, Operation{}), nil
		}
		likelyKnown = true
	}
}

// fly runs an attempt that is the only one of its operation in this process, and wakes those that wait for it even when apply
// panics.
func (x *Executor) fly(ctx context.Context, a *attempt, apply Apply) (Result, error) {
	defer x.flights.leave(a)
	work, cancel := context.WithTimeout(context.WithoutCancel(ctx), x.options.WorkTimeout)
	defer cancel()

	result, err := x.execute(work, a, apply)
	var refusal *Refusal
	switch {
	case errors.As(err, &refusal) && refusal.Final:
		// The refusal gets a transaction of its own, so that nothing apply wrote can come with it. If another process claimed
		// the key meanwhile, that attempt's answer stands and this one replays it.
		result, err = x.execute(work, a, refusal.store)
	case errors.As(err, &refusal):
		result, err = x.met(work, a, OutcomeRefused, Operation{}), nil
		result.Answer = refusal.Answer
	}
	return result, err
}

// execute runs the transaction of an attempt until its outcome is known, or can't be.
func (x *Executor) execute(ctx context.Context, a *attempt, apply Apply) (Result, error) {
	began, races, gone, lost, doubtful := time.Now(), 0, 0, 0, false
	for {
		result, err := x.transact(ctx, a, apply, doubtful)
		switch {
		case errors.Is(err, database.ErrCommitUnknown) && !doubtful:
			// docs/protocol.md rule 8: repeat the claim. It waits for the first transaction to end, where a SELECT might miss it.
			doubtful = true
		case errors.Is(err, database.ErrSerialization) && races < maxRaces:
			races++
			pause(ctx, racePause)
		case errors.Is(err, database.ErrUnavailable) && lost < maxLost && time.Since(began) < lostPatience:
			lost++
			pause(ctx, lostPause<<lost)
		case errors.Is(err, errClaimGone) && gone < maxGone && !errors.Is(err, database.ErrBusy): // that one has waited long enough
			gone++
		case doubtful && (errors.Is(err, errClaimGone) || isStoreError(err)):
			return Result{}, fmt.Errorf("look for the lost COMMIT: %w: %w", database.ErrCommitUnknown, err)
		case errors.Is(err, errClaimGone):
			return x.met(ctx, a, OutcomeInProgress, Operation{}), nil
		default:
			return result, err
		}
	}
}

// pause lasts about d, so that two who lost against each other don't meet again, and no longer than ctx.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d/2 + rand.N(d))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// saw notes that an operation is committed.
func (x *Executor) saw(id identity) {
	x.seen.add(id)
	x.doubts.settle(id)
}

func isStoreError(err error) bool {
	return errors.Is(err, database.ErrUnavailable) || errors.Is(err, database.ErrBusy) || errors.Is(err, database.ErrSerialization) ||
		errors.Is(err, database.ErrNotMigrated) || errors.Is(err, database.ErrCommitUnknown)
}
