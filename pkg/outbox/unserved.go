package outbox

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

// countWithin bounds what is counted for people: a million open effects take less, and nothing waits for it.
const countWithin = 5 * time.Second

// warnOfUnserved tells whoever has changed the settings that effects are open which nobody sends or asks about now.
func (o *Outbox) warnOfUnserved(ctx context.Context) {
	open, err := o.countOpen(ctx)
	if err != nil {
		if ctx.Err() == nil {
			o.log.WarnContext(ctx, "open effects not counted", slog.Any("error", err))
		}
		return
	}
	unserved := map[string]int64{}
	for of, n := range open {
		if _, err := o.target(of.Target); err != nil {
			unserved[of.Target] += n
		}
	}
	for target, n := range unserved {
		o.log.WarnContext(ctx, "this process does not serve the target of open effects; they wait until one does", slog.String("target", target), slog.Int64("effects", n))
	}
}

// openOf is what open effects are counted by.
type openOf struct {
	Target string
	State  idempotency.State
}

// countOpen counts the effects of all accounts that are queued, running or unknown, by the indexes of the lanes. What waits for an
// approval is in none of them; no target is needed for it yet.
func (o *Outbox) countOpen(ctx context.Context) (map[openOf]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, countWithin)
	defer cancel()
	var rows []struct {
		Target  string
		State   idempotency.State
		Effects int64
	}
	err := o.db.Read(ctx).Raw(`SELECT target, state, count(*) AS effects FROM effects WHERE ` + toSend + ` GROUP BY target, state
		UNION ALL SELECT target, state, count(*) FROM effects WHERE ` + toSendFirst + ` GROUP BY target, state
		UNION ALL SELECT target, state, count(*) FROM effects WHERE ` + toAsk + ` GROUP BY target, state`).Scan(&rows).Error
	if err != nil {
		return nil, database.Classify(fmt.Errorf("count open effects: %w", err))
	}
	open := map[openOf]int64{}
	for _, row := range rows {
		open[openOf{row.Target, row.State}] += row.Effects
	}
	return open, nil
}
