package outbox

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/einmal/einmal/pkg/approval"
	"github.com/einmal/einmal/pkg/database"
)

// expireApprovals ends the questions that nobody has answered in time. One that can't be ended keeps no other from it.
func (o *Outbox) expireApprovals(ctx context.Context) error {
	var last approval.Approval
	for now := o.db.Now(); ctx.Err() == nil; {
		overdue, err := o.overdueApprovals(ctx, now, last)
		if err != nil {
			return err
		}
		for _, a := range overdue {
			if err := o.expire(ctx, a); err != nil && ctx.Err() == nil {
				o.log.ErrorContext(ctx, "overdue approval not ended", slog.String("approval", a.ID), slog.Any("error", err))
			}
			last = a
		}
		if len(overdue) < atOnce {
			return nil
		}
	}
	return nil
}

// overdueApprovals reads questions that nobody has answered in time, after the last that was read.
func (o *Outbox) overdueApprovals(ctx context.Context, now time.Time, last approval.Approval) ([]approval.Approval, error) {
	ctx, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	return approval.Overdue(o.db.Read(ctx), now, last, atOnce)
}

// expire ends the operation of an overdue question, unless somebody has ended it meanwhile, or only another process can.
func (o *Outbox) expire(ctx context.Context, a approval.Approval) error {
	ctx, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
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
