package outbox

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/einmal/einmal/pkg/database"
)

const (
	// listed is how many due effects are read at once for each place. It is also how many turns of every place an account that
	// comes now may have to wait for those that were read before it.
	listed = 2

	// lists bounds the statements of one listing, each of which leaves out the accounts of those before it.
	lists = 8
)

// The kinds of work on a target, as conditions on effects: each is the condition of an index, word by word.
const (
	toSend      = "state = 'queued' AND NOT priority"
	toSendFirst = "state = 'queued' AND priority"
	toAsk       = "state IN ('running', 'unknown')"
)

// lane is one kind of work on one target, with places of its own.
type lane struct {
	target  Target
	due     string // which effects, beside that their time has come
	work    func(ctx context.Context, t Target, e Effect) error
	places  chan struct{}
	limiter *rate.Limiter
	waiting []Effect  // due, and not begun; they take turns in it
	wake    time.Time // when the next is due that is not yet; zero: none is known
	begun   sync.Map  // ids of effects that are in a place
}

func (o *Outbox) lanes(t Target) []*lane {
	of := func(due string, work func(context.Context, Target, Effect) error, limit Limit) *lane {
		most := rate.Inf
		if limit.PerSecond > 0 {
			most = rate.Limit(limit.PerSecond)
		}
		return &lane{target: t, due: due, work: work, places: make(chan struct{}, limit.Places), limiter: rate.NewLimiter(most, limit.Places)}
	}
	return []*lane{of(toSend, o.send, t.Sends), of(toSendFirst, o.send, t.PrioritySends), of(toAsk, o.ask, t.Asks)}
}

// run begins due effects as places become free, until ctx ends; then it waits for those under way.
func (o *Outbox) run(ctx context.Context, l *lane) {
	var under sync.WaitGroup
	defer under.Wait()
	poll := time.NewTimer(o.pollEvery)
	defer poll.Stop()
	for ctx.Err() == nil {
		nudged := o.nudges.wait()
		for o.begin(ctx, l, &under) {
		}
		pause := o.pollEvery
		if !l.wake.IsZero() {
			pause = min(pause, l.wake.Sub(o.db.Now()))
		}
		poll.Reset(pause)
		select {
		case <-ctx.Done():
		case <-nudged:
		case <-poll.C:
		}
	}
}

// begin waits for a place and for the limit, and begins the next due effect. It reports whether there was one.
func (o *Outbox) begin(ctx context.Context, l *lane, under *sync.WaitGroup) bool {
	select {
	case l.places <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	e, ok := o.next(ctx, l)
	if !ok || l.limiter.Wait(ctx) != nil {
		<-l.places
		return false
	}
	l.begun.Store(e.ID, true)
	under.Go(func() {
		defer func() {
			l.begun.Delete(e.ID)
			<-l.places
		}()
		if err := o.work(ctx, l, e); err != nil {
			o.log.ErrorContext(ctx, "effect not settled; it will be asked about", slog.String("effect", e.ID), slog.String("target", l.target.Name), slog.Any("error", err))
			wait(ctx, firstWait) // whatever failed would fail again at once
		}
	})
	return true
}

// work turns a panic, of a service that settles, into an error: the effect is asked about, the others go on.
func (o *Outbox) work(ctx context.Context, l *lane, e Effect) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	return l.work(ctx, l.target, e)
}

// next returns a due effect that is not in a place.
func (o *Outbox) next(ctx context.Context, l *lane) (Effect, bool) {
	if len(l.waiting) == 0 {
		var err error
		if l.waiting, err = o.list(ctx, l); err != nil {
			if ctx.Err() == nil {
				o.log.WarnContext(ctx, "due effects not read", slog.String("target", l.target.Name), slog.Any("error", err))
			}
			return Effect{}, false
		}
	}
	for len(l.waiting) > 0 {
		e := l.waiting[0]
		l.waiting = l.waiting[1:]
		if _, begun := l.begun.Load(e.ID); !begun {
			return e, true
		}
	}
	return Effect{}, false
}

// list reads due effects, the oldest first, and among them a share for every account: one with ten thousand does not make others
// wait for them. It locks nothing; each is then taken by compare-and-set. Their commands are read with that. It
// also notes when the next is due, so that the lane wakes then.
func (o *Outbox) list(ctx context.Context, l *lane) ([]Effect, error) {
	ctx, cancel := context.WithTimeout(ctx, l.target.Lease) // as long as a take may last: see there
	defer cancel()
	limit, now := listed*cap(l.places), o.db.Now()
	l.wake = time.Time{}
	var all []Effect
	seen := []string{}
	for range lists {
		query := o.db.Read(ctx).Omit("command").Where("target = ? AND next_at IS NOT NULL", l.target.Name).Where(l.due)
		if len(seen) > 0 {
			query = query.Where("account_id NOT IN ?", padded(seen))
		}
		var some []Effect
		if err := query.Order("next_at").Limit(limit).Find(&some).Error; err != nil {
			return nil, database.Classify(err)
		}
		if i := slices.IndexFunc(some, func(e Effect) bool { return e.NextAt.After(now) }); i >= 0 {
			l.wake, some = *some[i].NextAt, some[:i]
		}
		all = append(all, some...)
		if len(some) < limit {
			break
		}
		for _, e := range some {
			if !slices.Contains(seen, e.AccountID) {
				seen = append(seen, e.AccountID)
			}
		}
	}
	return rotate(all, limit), nil
}

// padded repeats an account until there are 1, 2, 4 … of them: a connection to PostgreSQL keeps every text that it has prepared, and
// one for each number of accounts would be many.
func padded(accounts []string) []string {
	for len(accounts)&(len(accounts)-1) != 0 {
		accounts = append(accounts, accounts[0])
	}
	return accounts
}

// rotate takes the accounts in turn, keeping the order within each: each once at least, and on to the limit.
func rotate(effects []Effect, limit int) []Effect {
	var order []string
	by := map[string][]Effect{}
	for _, e := range effects {
		if by[e.AccountID] == nil {
			order = append(order, e.AccountID)
		}
		by[e.AccountID] = append(by[e.AccountID], e)
	}
	var turns []Effect
	for len(turns) < min(limit, len(effects)) {
		for _, account := range order {
			if left := by[account]; len(left) > 0 {
				turns = append(turns, left[0])
				by[account] = left[1:]
			}
		}
	}
	return turns
}
