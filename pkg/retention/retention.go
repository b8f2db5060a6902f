package retention

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

// Deps is what a Purger is given.
type Deps struct {
	DB      *database.DB
	Log     *slog.Logger
	Service string // in the metrics

	// Record writes events in the transaction of what they tell; the hook of idempotency.Options.
	Record func(tx database.Tx, events ...idempotency.Event) error

	// Response and Tombstone are the times that the policy publishes (see idempotency.Options), and Every is how long after a round the
	// next one begins. All are longer than nothing; catalogue.Settings sees to that.
	Response, Tombstone, Every time.Duration

	// Following returns the key of the operation that follows the one of a key, if there is such a one. The first is not forgotten
	// before the second: claimed again, it would find that taken. Nil: none follows any.
	Following func(idempotency.Key) idempotency.Key

	// Also are the service's own rows that are past their time.
	Also []Step
}

// Step removes rows of one kind.
type Step struct {
	What string // for the metrics and the log

	// Remove removes up to most rows that were done with at that time, and says how many.
	Remove func(tx database.Tx, until time.Time, most int) (int64, error)
}

// Purger drops what is past its retention. Several replicas share one database.
type Purger struct {
	Deps
	removed *prometheus.CounterVec
}

// New makes a Purger.
func New(deps Deps) *Purger { return &Purger{Deps: deps, removed: newRemoved(deps)} }

// The steps that every service has.
const (
	expired   = "expired"
	forgotten = "forgotten"
)

// Run does a round at once and then every so often, until ctx ends.
func (p *Purger) Run(ctx context.Context) {
	for ctx.Err() == nil {
		p.tell(ctx, p.Round)
		wait(ctx, p.Every)
	}
}

// tell does a round and logs what it did, if it did anything.
func (p *Purger) tell(ctx context.Context, round func(context.Context) (map[string]int64, error)) {
	began := time.Now()
	done, err := round(ctx)
	attrs := []any{slog.Duration("took", time.Since(began).Round(time.Millisecond))}
	any := false
	for what, n := range done {
		attrs, any = append(attrs, slog.Int64(what, n)), any || n > 0
	}
	switch {
	case err != nil && ctx.Err() == nil:
		p.Log.WarnContext(ctx, "purge broken off; the next round goes on", append(attrs, slog.Any("error", err))...)
	case any:
		p.Log.InfoContext(ctx, "purged", attrs...)
	}
}

// Round drops all that is due now and returns how much that was, by step. It ends soon after ctx does, and leaves nothing half done.
func (p *Purger) Round(ctx context.Context) (map[string]int64, error) {
	done := map[string]int64{}
	var errs []error
	step := func(what string, work func() (int64, error)) {
		n, err := work()
		done[what] += n
		p.removed.WithLabelValues(what).Add(float64(n))
		if err != nil && !errors.Is(err, errElsewhere) {
			errs = append(errs, fmt.Errorf("%s: %w", what, err))
		}
	}
	step(expired, func() (int64, error) { return p.expire(ctx) })
	step(forgotten, func() (int64, error) { return p.forget(ctx) })
	for _, s := range p.Also {
		step(s.What, func() (int64, error) { return p.also(ctx, s) })
	}
	return done, errors.Join(errs...)
}

// also does a service's own step.
func (p *Purger) also(ctx context.Context, s Step) (all int64, err error) {
	until := p.DB.Now().Add(-p.Response)
	for ctx.Err() == nil {
		var n int64
		err := p.batch(ctx, func(tx database.Tx, _ func() bool) (err error) {
			n, err = s.Remove(tx, until, atOnce)
			return err
		})
		if err != nil || n == 0 {
			return all, err
		}
		all += n
	}
	return all, ctx.Err()
}
