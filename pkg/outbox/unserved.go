package outbox

import (
	"context"
	"errors"
	"log/slog"
)

// warnOfUnserved tells whoever has changed the settings that effects are open which nobody sends or asks about now.
func (o *Outbox) warnOfUnserved(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, countWithin)
	defer cancel()
	open, err := o.countOpen(ctx)
	if err != nil {
		if !errors.Is(ctx.Err(), context.Canceled) { // shutting down
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
