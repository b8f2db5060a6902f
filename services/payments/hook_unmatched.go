package payments

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-json-experiment/json"

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
	for {
		if err := h.askAbout(ctx, after); err != nil && ctx.Err() == nil {
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
	known, err := h.knows(tx, c)
	if err != nil {
		return err
	}
	if known {
		return h.store.forget(tx, u)
	}
	id, err := review.Open(tx, review.Review{
		AccountID: u.AccountID, Kind: review.Unmatched, Owner: reviewOwner,
		Evidence: []review.Evidence{{Source: "psp webhook", At: u.ReceivedAt, Says: fmt.Sprintf("%s (%s) about %s, which no operation here has made", u.EventType, u.EventID, u.Reference)}},
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

// knows reports whether there is what an object says that it belongs to. Since then its own webhooks, or the look-ups of its operation,
// have told what became of it.
func (h hook) knows(tx database.Tx, c claims) (bool, error) {
	_, err := h.store.payment(tx.DB, c.Account, c.PaymentID)
	if err == nil && c.RefundID != "" {
		_, err = h.store.refund(tx.DB, c.Account, c.RefundID)
	}
	if errors.Is(err, errNotFound) {
		return false, nil
	}
	return err == nil, err
}
