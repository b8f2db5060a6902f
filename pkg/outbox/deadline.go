package outbox

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/review"
)

// passDeadlines ends or asks about the effects of a target whose deadline has passed. One that can't be settled keeps no other from it.
func (o *Outbox) passDeadlines(ctx context.Context, t Target) error {
	var last Effect
	for ctx.Err() == nil {
		late, err := o.late(ctx, t, last)
		if err != nil {
			return err
		}
		for _, e := range late {
			if err := o.passDeadline(ctx, t, e); err != nil && ctx.Err() == nil {
				o.log.ErrorContext(ctx, "effect past its deadline not settled", slog.String("effect", e.ID), slog.String("target", t.Name), slog.Any("error", err))
			}
		}
		if len(late) > 0 {
			o.Nudge() // some may be due to be asked about, or somebody waits for what they held
		}
		if len(late) < atOnce {
			return nil
		}
		last = late[len(late)-1]
	}
	return nil
}

// late reads effects of a target that are open past their deadline, which nobody has noticed yet, the longest past first, after the last
// that was read.
func (o *Outbox) late(ctx context.Context, t Target, last Effect) (late []Effect, err error) {
	ctx, cancel := context.WithTimeout(ctx, t.Lease) // as listing what is due
	defer cancel()
	query := o.db.Read(ctx).Select("account_id", "id", "operation_id", "deadline").
		Where("state IN ('queued', 'running', 'unknown') AND overdue_at IS NULL AND deadline IS NOT NULL"). // as the index has it
		Where("target = ? AND deadline <= ?", t.Name, o.db.Now())
	if last.ID != "" {
		query = query.Where("(deadline, id) > (?, ?)", last.Deadline, last.ID)
	}
	if err := query.Order("deadline, id").Limit(atOnce).Find(&late).Error; err != nil {
		return nil, database.Classify(fmt.Errorf("read effects past their deadline: %w", err))
	}
	return late, nil
}

// passDeadline ends an effect that has certainly not happened, and asks a person about any other. That one is not sent any more, and is
// asked about as before; when it ends, so does the question.
func (o *Outbox) passDeadline(ctx context.Context, t Target, e Effect) error {
	ended := false
	ctx, cancel := context.WithTimeout(ctx, t.Lease)
	defer cancel()
	err := o.db.InTx(ctx, func(tx database.Tx) error {
		ended = false
		known, err := hold(tx, e)
		if err != nil {
			return err
		}
		if known.State == idempotency.Queued {
			s := t.afterLastSend(*known, tx.Now)
			if s.change == nil {
				return nil // it may be sent again: its deadline was another when it was listed
			}
			changed, err := s.change(tx)
			if err != nil || !changed {
				return err // somebody was faster; the next look finds what they have made of it
			}
			if ended = s.to.Final(); ended {
				return o.finish(tx, t, *known, End{State: s.to, Reason: s.reason})
			}
			if err := o.note(tx, *known, *known, Evidence{}, s.to); err != nil {
				return err
			}
		}
		return o.askOverdue(tx, *known)
	})
	if err != nil {
		return err
	}
	if ended {
		o.Announce(e.OperationID)
	}
	return nil
}

// askOverdue tells a person, once, about an effect that is open past its deadline.
func (o *Outbox) askOverdue(tx database.Tx, e Effect) error {
	noted, err := overdue(tx, e)
	if err != nil || !noted {
		return err
	}
	says := fmt.Sprintf("its deadline has passed after %s, and it is not certain that nothing has happened; nothing more is sent, and the target is asked as before", counted(e.Attempts, "send"))
	if e.AcceptedAt != nil {
		says = "its deadline has passed, and it still goes on at the target"
	}
	id, err := review.Open(tx, review.Question{
		AccountID: e.AccountID, Kind: review.Deadline, OperationID: e.OperationID, Type: e.Type,
		Evidence: []review.Evidence{{Source: "deadline", At: *e.Deadline, Says: says}},
	})
	if err != nil {
		return err
	}
	// Who is asked already whether it has happened is who decides.
	if err := rowOf(e, tx.AtCommit()).Table("effects").Where("review_id = ''").UpdateColumn("review_id", id).Error; err != nil {
		return fmt.Errorf("note review: %w", err)
	}
	return nil
}
