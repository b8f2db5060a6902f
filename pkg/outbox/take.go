package outbox

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

// moment is one moment on two clocks: what the database said, and this process's monotonic clock.
type moment struct {
	database time.Time
	local    time.Time
}

// moment reads both clocks. Ours comes first: a pause between the two counts as time that has passed.
func (o *Outbox) moment() moment {
	local := time.Now()
	return moment{o.db.Now(), local}
}

// before reports whether a time of the database is still to come, by our own monotonic clock: a process that slept between the
// take and now must not send any more (docs/protocol.md, rule 1).
func (m moment) before(limit *time.Time) bool {
	return limit != nil && m.database.Add(time.Since(m.local)).Before(*limit)
}

// take commits a take and returns the effect as it then is, or nil if somebody else was faster or a condition did not hold. A
// COMMIT without an answer is read back by the name under which only this take was made: what is not certainly ours is not
// acted on. kind is that of the attempt it begins; empty: none. It ends within the lease that it would get: a database that has gone
// silent must not keep a worker.
func (o *Outbox) take(ctx context.Context, t Target, e Effect, kind string, statement func(tx database.Tx, by string) (bool, error)) (*Effect, moment, error) {
	var taken *Effect
	var at moment
	by := idempotency.NewID("try", o.db.Now())
	bounded, cancel := context.WithTimeout(ctx, t.Lease)
	defer cancel()
	err := o.db.InTx(bounded, func(tx database.Tx) error {
		at = o.moment()
		won, err := statement(tx, by)
		if err != nil || !won {
			return err
		}
		if taken, err = find(tx.DB, e); err != nil {
			return err
		}
		if err := beginAttempt(tx, *taken, by, kind); err != nil {
			return err
		}
		return o.noteTake(tx, e, *taken)
	})
	switch {
	case errors.Is(err, database.ErrCommitUnknown):
		again, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.Lease)
		defer cancel()
		back, err := find(o.db.Read(again), e)
		if err != nil || back.LeasedBy != by {
			return nil, at, err
		}
		return back, at, nil
	case err != nil && ctx.Err() != nil: // shutting down; nothing was taken
		return nil, at, nil
	case err != nil:
		return nil, at, err
	}
	return taken, at, nil
}

// noteTake records a take that has changed the state.
func (o *Outbox) noteTake(tx database.Tx, before, taken Effect) error {
	switch {
	case before.State == taken.State:
		return nil
	case taken.State == idempotency.Running:
		return o.record(tx, o.event(tx, taken, idempotency.Sent, before.State))
	}
	return o.record(tx, o.event(tx, taken, idempotency.UnknownEvent, before.State))
}

// call makes one call. It ends within its time-out whatever becomes of ctx: at a shutdown, what is under way ends and is settled.
// A provider that panics has shown nothing, and takes nobody with it.
func (o *Outbox) call(ctx context.Context, t Target, e Effect, method func(context.Context, Effect) Evidence) (ev Evidence) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.Timeout)
	defer cancel()
	defer func() {
		if r := recover(); r != nil {
			o.log.ErrorContext(ctx, "provider panicked", slog.String("effect", e.ID), slog.String("target", t.Name), slog.Any("panic", r),
				slog.String("stack", string(debug.Stack())))
			ev = Evidence{Finding: Ambiguous, Says: "the provider failed"}
		}
	}()
	return t.Ability.believe(method(ctx, e).kept())
}
