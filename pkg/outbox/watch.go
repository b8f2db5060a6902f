package outbox

import (
	"context"
	"log/slog"
	"time"
)

// atOnce bounds what one look for what is overdue reads. After an outage there may be ten thousand: each has a short transaction of its
// own, so that they keep nobody from the database.
const atOnce = 100

// answersWithin bounds one statement of a look, or one transaction: more than twice as long as waiting for a lock may take. A database that
// has gone silent must not keep all that is looked for after this.
const answersWithin = 5 * time.Second

// watch looks for what has become overdue until ctx ends. Every replica does: each thing is noted by one of them, in a statement that
// the others' finds done. What it misses is none the less overdue: no send and no decision counts any more.
func (o *Outbox) watch(ctx context.Context) {
	tick := time.NewTicker(o.pollEvery)
	defer tick.Stop()
	for {
		o.lookThrough(ctx, "approvals", o.expireApprovals)
		for _, t := range o.targets {
			o.lookThrough(ctx, "effects of "+t.Name, func(ctx context.Context) error { return o.passDeadlines(ctx, t) })
		}
		o.lookThrough(ctx, "reviews", o.escalate)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (o *Outbox) lookThrough(ctx context.Context, what string, look func(ctx context.Context) error) {
	if err := look(ctx); err != nil && ctx.Err() == nil {
		o.log.WarnContext(ctx, "not looked through for what is overdue", slog.String("what", what), slog.Any("error", err))
	}
}
