package payments

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-json-experiment/json"
	"gorm.io/gorm"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency/idemhttp"
	"github.com/einmal/einmal/pkg/review"
)

const (
	// sweepEvery is how often it is looked for unknown objects that have waited long enough: they wait a day, so that a minute more
	// or less is nothing, and looking costs a read of an index that is empty.
	sweepEvery = time.Minute

	// sweepAtOnce bounds what one look reads.
	sweepAtOnce = 100
)

// keep notes an object that is not ours, under the account whose operators will be asked about it.
func (h hook) keep(tx database.Tx, t told) error {
	claimed, err := idemhttp.Marshal(t.claims)
	if err != nil {
		return err
	}
	return h.store.keep(tx, unmatched{AccountID: h.account, Reference: t.ID, EventID: t.EventID, EventType: t.Type, Claims: string(claimed), ReceivedAt: tx.Now})
}

// sweep asks people about unknown objects that nothing has explained within a time, until ctx ends.
func (h hook) sweep(ctx context.Context, log *slog.Logger, after time.Duration) {
	tick := time.NewTicker(min(sweepEvery, after))
	defer tick.Stop()
	for last := ""; ; {
		err := h.askAbout(ctx, after)
		if err == nil {
			last, err = h.explain(ctx, last)
		}
		if err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "unmatched objects not looked through", slog.Any("error", err))
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// askAbout opens a review for each object that has been unknown for a time. Another replica may do the same: one of them does it.
func (h hook) askAbout(ctx context.Context, after time.Duration) error {
	overdue, err := h.store.overdue(h.store.db.Read(ctx), h.store.db.Now().Add(-after), sweepAtOnce)
	if err != nil {
		return err
	}
	for _, u := range overdue {
		if err := h.store.db.InTx(ctx, func(tx database.Tx) error { return h.decide(tx, u) }); err != nil && !errors.Is(err, errAsked) {
			return err
		}
	}
	return nil
}

// errAsked: another replica has asked.
var errAsked = errors.New("somebody is asked about it")

// decide forgets an object that has become known, and asks about any other.
func (h hook) decide(tx database.Tx, u unmatched) error {
	var c claims
	if err := json.Unmarshal([]byte(u.Claims), &c); err != nil {
		return fmt.Errorf("read claims of %s: %w", u.Reference, err)
	}
	owner, err := h.owner(tx.DB, u.Reference, c)
	if err != nil {
		return err
	}
	if owner != "" {
		return h.store.forget(tx, u)
	}
	id, err := review.Open(tx, review.Question{
		AccountID: u.AccountID, Kind: review.Unmatched,
		Evidence: []review.Evidence{{Source: webhookSource, At: u.ReceivedAt, Says: fmt.Sprintf("%s (%s) about %s, which no operation here has made", u.EventType, u.EventID, u.Reference)}},
	})
	if err != nil {
		return err
	}
	asked, err := h.store.asked(tx, u, id)
	if err == nil && !asked {
		err = errAsked
	}
	return err
}

// explain looks whether what people are asked about belongs to something that has appeared since, as after a restore, when a claim that was
// forgotten is made again. Then the question is answered, by that. It goes on after the last that it has looked at, and begins again in the
// end.
func (h hook) explain(ctx context.Context, last string) (next string, err error) {
	open, err := h.store.inReview(h.store.db.Read(ctx), h.account, last, sweepAtOnce)
	if err != nil {
		return last, err
	}
	for _, u := range open {
		var c claims
		if err := json.Unmarshal([]byte(u.Claims), &c); err != nil {
			return last, fmt.Errorf("read claims of %s: %w", u.Reference, err)
		}
		owner, err := h.owner(h.store.db.Read(ctx), u.Reference, c)
		if err != nil {
			return last, err
		}
		if owner == "" {
			continue
		}
		err = h.store.db.InTx(ctx, func(tx database.Tx) error {
			return review.ResolveUnmatched(tx, u.AccountID, u.ReviewID, review.Evidence{
				Source: Name, At: tx.Now, Says: fmt.Sprintf("%s belongs to %s of account %s, which has appeared since", u.Reference, owner, c.Account),
			})
		})
		if err != nil {
			return last, err
		}
	}
	if len(open) < sweepAtOnce {
		return "", nil
	}
	return open[len(open)-1].ReviewID, nil
}

// owner is the operation that an object belongs to, or empty: by what it says of itself, or by what we have come to call the object. Its
// own webhooks, or the look-ups of that operation, tell what became of it.
func (h hook) owner(read *gorm.DB, reference string, c claims) (operationID string, err error) {
	payment, err := h.store.payment(read, c.Account, c.PaymentID)
	switch {
	case err == nil && c.RefundID == "":
		return payment.OperationID, nil
	case err == nil:
		refund, err := h.store.refund(read, c.Account, c.RefundID)
		if err == nil {
			return refund.OperationID, nil
		}
		if !errors.Is(err, errNotFound) {
			return "", err
		}
	case !errors.Is(err, errNotFound):
		return "", err
	}
	return h.store.named(read, c.Account, reference)
}
