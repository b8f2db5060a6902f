package outbox

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/einmal/einmal/pkg/approval"
	"github.com/einmal/einmal/pkg/database"
)

// sweptAtOnce bounds how many overdue questions are read at once: each is ended in a transaction of its own.
const sweptAtOnce = 100

// sweep ends questions that nobody has answered in time, until ctx ends. What it misses is none the less expired: no decision counts
// any more.
func (o *Outbox) sweep(ctx context.Context) {
	again := time.NewTicker(o.pollEvery)
	defer again.Stop()
	for {
		if err := o.endOverdue(ctx); err != nil && ctx.Err() == nil {
			o.log.WarnContext(ctx, "overdue approvals not ended", slog.Any("error", err))
		}
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		}
	}
}

// endOverdue ends all questions that are overdue now.
func (o *Outbox) endOverdue(ctx context.Context) error {
	var last approval.Approval
	for now := o.db.Now(); ; {
		overdue, err := approval.Overdue(o.db.Read(ctx), now, last, sweptAtOnce)
		if err != nil {
			return err
		}
		for _, a := range overdue {
			if err := o.expire(ctx, a); err != nil {
				return err
			}
			last = a
		}
		if len(overdue) < sweptAtOnce {
			return nil
		}
	}
}

// expire ends the operation of an overdue question, unless somebody has ended it meanwhile, or only another process can.
func (o *Outbox) expire(ctx context.Context, a approval.Approval) error {
	err := o.db.InTx(ctx, func(tx database.Tx) error {
		e, t, err := o.ofTarget(tx, a.AccountID, a.OperationID)
		if err != nil {
			return err
		}
		_, err = o.tooLate(tx, t, e, a, ByExpiry)
		return err
	})
	switch {
	case errors.Is(err, ErrNoEffect), errors.Is(err, ErrNotServed), errors.Is(err, approval.ErrDecided):
		return nil
	case err == nil:
		o.Announce(a.OperationID)
	}
	return err
}
