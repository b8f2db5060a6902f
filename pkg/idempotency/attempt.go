package idempotency

import (
	"context"
	"errors"
	"time"

	"github.com/einmal/einmal/pkg/database"
)

// attempt is a Request on its way.
type attempt struct {
	Request
	identity    identity
	fingerprint Fingerprint
	id          string // att_…
	operation   Operation
	flight      *flight // nil while another attempt is the flight
}

func (x *Executor) newAttempt(req Request) (*attempt, error) {
	switch {
	case req.Key == "":
		return nil, ErrKeyMissing
	case req.Command.Account == "":
		return nil, errors.New("attempt operation: the command has no account")
	}
	fingerprint, err := req.Command.Fingerprint()
	if err != nil {
		return nil, err
	}
	now := x.db.Now()
	return &attempt{
		Request:     req,
		identity:    identity{req.Command.Account, req.Key},
		fingerprint: fingerprint,
		id:          NewID("att", now),
		operation:   newOperation(req, fingerprint, now),
	}, nil
}

var (
	// errClaimGone: the claim was lost, and what it was lost against is not there. It is open in another process, or has just
	// been rolled back.
	errClaimGone = errors.New("claim lost against one that is not there")

	// errLost ends a transaction whose claim was lost; it never leaves transact.
	errLost = errors.New("claim lost")
)

// transact is one transaction of an attempt: claim, apply, answer, events. With a doubtful predecessor, whose COMMIT got no
// answer, the claim waits for that one to end; finding that very claim committed means that it was executed.
func (x *Executor) transact(ctx context.Context, a *attempt, apply Apply, doubtful bool) (result Result, err error) {
	err = x.db.InTx(ctx, func(tx database.Tx) error {
		op := a.operation
		op.CreatedAt, op.UpdatedAt = tx.Now, tx.Now
		won, err := insertClaim(tx, op, doubtful)
		if err != nil {
			return err
		}
		if !won {
			if result, err = x.lost(tx, a, doubtful); err != nil {
				return err
			}
			return errLost
		}
		a.flight.win()
		answer, err := apply(tx, op)
		if err != nil {
			return err
		}
		if err := finishClaim(tx, &op, answer); err != nil {
			return err
		}
		result = Result{Outcome: outcomeOf(answer.State), Operation: op, Answer: answer}
		return x.options.Record(tx, a.event(Attempted, tx.Now, op), a.event(answer.State.becomes(), tx.Now, op))
	})
	switch {
	case errors.Is(err, errLost):
		x.noteMet(ctx, a, result)
		return result, nil
	case err != nil:
		return Result{}, err
	}
	x.saw(a.identity)
	return result, nil
}

// lost finds out what an attempt lost against.
func (x *Executor) lost(tx database.Tx, a *attempt, doubtful bool) (Result, error) {
	op, found, err := find(tx.DB, a.identity)
	switch {
	case err != nil:
		return Result{}, err
	case !found:
		return Result{}, errClaimGone
	case doubtful && op.ID == a.operation.ID && op.ResponseExpiredAt == nil:
		return Result{Outcome: outcomeOf(op.State), Operation: op, Answer: op.Answer()}, nil
	}
	return x.judge(a, op, tx.Now)
}

// lookUp answers an attempt from a committed operation, with one read. It decides nothing when there is none.
func (x *Executor) lookUp(ctx context.Context, a *attempt) (result Result, found bool, err error) {
	// Bounded by us alone: a database that has gone silent has all the time in the world, and a caller that has closed its side of
	// the connection still reads the answer.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), x.options.WorkTimeout)
	defer cancel()
	op, found, err := find(x.db.Read(ctx), a.identity)
	if err != nil || !found {
		return Result{}, false, database.Classify(err)
	}
	result, err = x.judge(a, op, x.db.Now())
	if err == nil {
		x.noteMet(ctx, a, result)
	}
	return result, true, err
}

// judge says what an attempt means that meets a committed operation.
func (x *Executor) judge(a *attempt, op Operation, now time.Time) (Result, error) {
	same, err := a.fingerprint.matches(op.Fingerprint)
	switch {
	case err != nil:
		return Result{}, err
	case !same:
		return Result{Outcome: OutcomeConflict, Operation: op}, nil
	case op.expired(now, x.options.ResponseRetention):
		return Result{Outcome: OutcomeExpired, Operation: op}, nil
	case !op.State.Final():
		return Result{Outcome: OutcomeInProgress, Operation: op}, nil
	}
	return Result{Outcome: OutcomeReplayed, Operation: op, Answer: op.Answer()}, nil
}

// outcomeOf is the outcome of the attempt whose claim left an operation in state s.
func outcomeOf(s State) Outcome {
	switch {
	case s == Failed || s == Canceled:
		return OutcomeRefused
	case s.Final():
		return OutcomeExecuted
	}
	return OutcomeAccepted
}

// metEvents are the events of attempts that committed nothing.
var metEvents = map[Outcome]EventType{
	OutcomeReplayed:   Replayed,
	OutcomeInProgress: InProgress,
	OutcomeConflict:   Conflict,
	OutcomeExpired:    Expired,
	OutcomeRefused:    Denied,
}

// met is the result of an attempt that committed nothing.
func (x *Executor) met(ctx context.Context, a *attempt, outcome Outcome, op Operation) Result {
	result := Result{Outcome: outcome, Operation: op}
	x.noteMet(ctx, a, result)
	return result
}

func (x *Executor) noteMet(ctx context.Context, a *attempt, result Result) {
	if result.Operation.ID != "" {
		x.saw(a.identity)
	}
	event, ok := metEvents[result.Outcome]
	if !ok || result.Operation.ID == a.operation.ID {
		return
	}
	x.options.Note(ctx, a.event(event, x.db.Now(), result.Operation))
}

func (a *attempt) event(t EventType, at time.Time, op Operation) Event {
	e := Event{
		Type: t, At: at, Account: a.Command.Account, Principal: a.Principal, AgentRun: a.AgentRun, RequestID: a.RequestID,
		OperationID: op.ID, AttemptID: a.id, KeyHash: a.Key.Hash(), Fingerprint: a.fingerprint, Route: a.operation.Route,
	}
	if t != Attempted && op.ID == a.operation.ID {
		e.To = op.State
	}
	return e
}
