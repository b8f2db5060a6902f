package simulator

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/einmal/einmal/pkg/database"
)

const (
	// deliveryTimeout is how long a webhook may take to accept an event. It is short, so that a receiver that takes its time gets
	// the event again while it still works on it, as real ones do.
	deliveryTimeout = 5 * time.Second

	// maxDue bounds the events that are read at once.
	maxDue = 100

	// lookAgain is how long the loop waits when it could not look, and longestWait when there is nothing to tell: whatever makes an
	// event nudges it.
	lookAgain   = time.Second
	longestWait = time.Minute
)

// webhooks tells events to the webhooks of the targets: one after the other in the order in which they are due, so that only a
// fault, or a receiver that does not accept one, brings them out of order.
type webhooks struct {
	batches    *batches
	log        *slog.Logger
	configured map[string]Webhook // by target; POST /_webhooks overrides them
	client     *http.Client
	wake       chan struct{}
}

func newWebhooks(b *batches, log *slog.Logger, config Config) *webhooks {
	return &webhooks{
		batches: b, log: log,
		configured: map[string]Webhook{psp.name: {Target: psp.name, URL: config.PSPWebhookURL, Secret: config.PSPWebhookSecret}},
		client: &http.Client{
			Timeout:       deliveryTimeout,
			Transport:     &http.Transport{DisableKeepAlives: true}, // each attempt is one request, as it is counted
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		wake: make(chan struct{}, 1),
	}
}

// nudge says that there may be an event to tell.
func (h *webhooks) nudge() {
	select {
	case h.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// run tells events until ctx ends. Those that it did not get to are told after the next start.
func (h *webhooks) run(ctx context.Context) {
	for ctx.Err() == nil {
		events, now, wait, err := h.due()
		if err != nil {
			h.log.LogAttrs(ctx, slog.LevelError, "events not read", slog.String("error", err.Error()))
			events, wait = nil, lookAgain
		}
		for _, e := range events {
			h.deliver(ctx, e, now)
		}
		if len(events) > 0 {
			continue // their copies, or more than were read at once
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-h.wake:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// due are the events to tell now, or how long to wait for the next.
func (h *webhooks) due() (events []Event, now time.Time, wait time.Duration, err error) {
	err = h.batches.do(func(tx database.Tx) error {
		events, now, wait = nil, tx.Now, longestWait
		err := tx.Where("copies > 0 AND due_at <= ?", now).Order("due_at, id").Limit(maxDue).Find(&events).Error
		if err != nil || len(events) > 0 {
			return err
		}
		var next []Event
		err = tx.Where("copies > 0").Order("due_at").Limit(1).Find(&next).Error
		if len(next) > 0 {
			wait = min(wait, next[0].DueAt.Sub(now))
		}
		return err
	})
	return events, now, wait, err
}

// deliver tells an event once.
func (h *webhooks) deliver(ctx context.Context, e Event, now time.Time) {
	said, err := h.post(ctx, e, now)
	if ctx.Err() != nil {
		return // the simulator stops; whether it arrived is not known, so it is told again
	}
	accepted := err == nil && said/100 == 2
	h.log.LogAttrs(ctx, slog.LevelDebug, "event", slog.String("target", e.Target), slog.String("event", e.ID),
		slog.String("type", e.Type), slog.Int("status", said), slog.Bool("accepted", accepted))
	settle := e.refused
	if accepted {
		settle = e.accepted
	}
	if err := h.batches.do(settle); err != nil {
		h.log.LogAttrs(ctx, slog.LevelError, "event not settled", slog.String("event", e.ID), slog.String("error", err.Error()))
	}
}

// post sends an event, signed as Stripe signs them: https://docs.stripe.com/webhooks#verify-manually.
func (h *webhooks) post(ctx context.Context, e Event, now time.Time) (status int, err error) {
	var hook Webhook
	err = h.batches.do(func(tx database.Tx) (err error) {
		hook, err = h.webhookOf(tx.DB, e.Target)
		return err
	})
	if err != nil {
		return 0, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, hook.URL, bytes.NewReader(e.Body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/json; charset=utf-8")
	request.Header.Set("Stripe-Signature", sign(e.Body, hook.Secret, now))
	response, err := h.client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, io.LimitReader(response.Body, maxBody)) // a receiver that has not finished has not accepted
	return response.StatusCode, err
}

func sign(body []byte, secret string, at time.Time) string {
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "%d.%s", at.Unix(), body)
	return fmt.Sprintf("t=%d,v1=%s", at.Unix(), hex.EncodeToString(mac.Sum(nil)))
}
