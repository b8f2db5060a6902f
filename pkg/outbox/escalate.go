package outbox

import (
	"context"
	"log/slog"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/review"
)

// escalate logs each review that nobody has resolved in time, once. A process that dies between noting and logging has logged nothing: the
// metric tells all the same.
func (o *Outbox) escalate(ctx context.Context) error {
	for ctx.Err() == nil {
		overdue, err := o.overdueReviews(ctx)
		if err != nil {
			return err
		}
		for _, r := range overdue {
			noted, err := o.noteEscalated(ctx, r)
			if err != nil {
				return err
			}
			if noted {
				o.log.WarnContext(ctx, "review is overdue", slog.String("review", r.ID), slog.String("account", r.AccountID), slog.String("kind", string(r.Kind)),
					slog.String("operation_id", r.OperationID), slog.String("owner", r.Owner), slog.String("ask", r.Escalation), slog.Time("due_at", r.DueAt))
			}
		}
		if len(overdue) < atOnce {
			return nil
		}
	}
	return nil
}

func (o *Outbox) overdueReviews(ctx context.Context) ([]review.Review, error) {
	ctx, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	return review.Overdue(ctx, o.db, o.db.Now(), atOnce)
}

// noteEscalated reports whether it is for this process to tell of a review.
func (o *Outbox) noteEscalated(ctx context.Context, r review.Review) (noted bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	err = o.db.InTx(ctx, func(tx database.Tx) (err error) {
		noted, err = review.Escalate(tx, r)
		return err
	})
	return noted, err
}
