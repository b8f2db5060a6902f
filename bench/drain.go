package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/einmal/einmal/e2e/harness"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/services/simulator"
	"github.com/einmal/einmal/services/tickets"
)

const (
	// begins is how often it is measured how soon an effect begins: enough for a percentile of 99.
	begins = 200

	// queueing is longer than it takes to queue the effects that are drained. So long the first of them wait for a desk that stands still.
	queueing = 5 * time.Minute

	// settledWithin ends a measurement that gets nowhere. lookEvery is often enough for a figure of many seconds, and seldom enough
	// to cost nothing.
	settledWithin = 5 * time.Minute
	lookEvery     = 100 * time.Millisecond
)

// drained is what one round of effects did.
type drained struct {
	perSecond float64

	// p50 and p99 run from the request that creates a ticket, when nothing else goes on, to the mirror's arrival at the desk, by one
	// clock. The transaction with its COMMIT is within that.
	p50, p99 time.Duration

	// While it drained: what this process and the database spent, what the desk did, and the most that this process had on its heap.
	spent usage
	desk  time.Duration
	heap  uint64

	version string // of the database
}

// measureDrain measures effects on one kind of database and adds them to the report. Each round begins with empty databases: the time
// of a round must not depend on those before it.
func measureDrain(ctx context.Context, s settings, kind database.Kind, report *report) (err error) {
	dir, err := os.MkdirTemp("", "einmal-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	binary, err := harness.Build(ctx, dir)
	if err != nil {
		return err
	}
	for round := range s.rounds {
		fmt.Fprintf(os.Stderr, "%s: drain %d of %d\n", kind, round+1, s.rounds)
		d, err := drain(ctx, binary, kind, s.effects)
		if err != nil {
			return fmt.Errorf("drain: %w", err)
		}
		report.Versions[kind] = d.version
		report.addDrained(kind, s.effects, d)
	}
	return nil
}

// drain measures how soon an effect begins, and how fast a queue of them is brought to a desk, which is a process of its own.
func drain(ctx context.Context, binary string, kind database.Kind, effects int) (d drained, err error) {
	lab, err := harness.New(ctx, harness.Options{Binary: binary, Database: string(database.SQLite)})
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, lab.Close()) }()
	desk, err := lab.Serve(ctx, harness.Settings{Role: simulator.Name, DatabaseURL: lab.EmbeddedURL(simulator.Name)})
	if err != nil {
		return d, err
	}
	storage, err := newStorage(ctx, kind, false)
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, storage.remove()) }()
	service, err := startTickets(ctx, storage.ticketsURL, func(c *tickets.Config) {
		c.ProviderURL, c.ProviderTimeout, c.EffectLease = desk.URL(), queueing, 2*queueing
	})
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, service.close()) }()
	b := brought{service, desk}
	if d.version, err = version(ctx, service.db); err != nil {
		return d, err
	}

	var requested []time.Time
	for range begins {
		requested = append(requested, time.Now())
		if err := b.queue(1, 1); err != nil {
			return d, err
		}
		if _, err := b.settled(ctx, time.Millisecond); err != nil {
			return d, err
		}
	}
	if d.p50, d.p99, err = b.delays(ctx, requested); err != nil {
		return d, err
	}
	if err := errors.Join(desk.Freeze(), b.queue(effects, fillers), desk.Thaw()); err != nil {
		return d, err
	}
	processes, err := service.processes(ctx)
	if err != nil {
		return d, err
	}
	began, before, desksBefore := time.Now(), usageOf(processes), cpuOf(desk.Pid())
	if d.heap, err = b.settled(ctx, lookEvery); err != nil {
		return d, err
	}
	d.perSecond = float64(effects) / time.Since(began).Seconds()
	d.spent, d.desk = usageOf(processes).since(before), cpuOf(desk.Pid())-desksBefore
	return d, errors.Join(b.check(ctx, begins+effects), service.fsck(ctx))
}

// brought are effects on their way from a service to a desk.
type brought struct {
	service *target
	desk    *harness.Service
}

// queue creates n tickets, each with an effect.
func (b brought) queue(n, callers int) error {
	all := make([]*caller, 0, callers)
	for range callers {
		connection, err := dial(b.service.addr)
		if err != nil {
			return err
		}
		defer connection.close()
		all = append(all, &caller{client: connection})
	}
	creation := variants[1]
	return together(all, func(c *caller) error {
		for range n / callers {
			if err := c.once(creation); err != nil {
				return err
			}
		}
		return nil
	})
}

// settled waits until no effect is open. It returns the most that was on this process's heap meanwhile.
func (b brought) settled(ctx context.Context, every time.Duration) (heap uint64, err error) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for end := time.Now().Add(settledWithin); ; {
		var memory runtime.MemStats
		runtime.ReadMemStats(&memory)
		heap = max(heap, memory.HeapAlloc)
		var open bool
		err := b.service.db.Read(ctx).Raw("SELECT EXISTS (SELECT 1 FROM effects WHERE state IN ('queued', 'running', 'unknown'))").Scan(&open).Error
		switch {
		case err != nil || !open:
			return heap, err
		case time.Now().After(end):
			return heap, fmt.Errorf("effects are not settled within %s", settledWithin)
		}
		<-tick.C
	}
}

// delays are how long the effects took to begin that were requested one after the other.
func (b brought) delays(ctx context.Context, requested []time.Time) (p50, p99 time.Duration, err error) {
	var keys []string // ids grow with the time
	if err := b.service.db.Read(ctx).Table("effects").Order("id").Pluck("effect_key", &keys).Error; err != nil {
		return 0, 0, err
	}
	var calls []simulator.Call
	if err := b.ask(ctx, "/_calls", &calls); err != nil {
		return 0, 0, err
	}
	arrived := map[string]time.Time{}
	for _, call := range calls {
		arrived[call.EffectKey] = call.At
	}
	if len(keys) != len(requested) || len(arrived) != len(requested) {
		return 0, 0, fmt.Errorf("%d effects of %d requests have arrived, %d are known", len(arrived), len(requested), len(keys))
	}
	delays := make([]time.Duration, len(keys))
	for i, key := range keys {
		delays[i] = arrived[key].Sub(requested[i])
	}
	slices.Sort(delays)
	return delays[len(delays)/2], delays[len(delays)*99/100], nil
}

// check fails unless the desk has n effects, each once.
func (b brought) check(ctx context.Context, n int) error {
	var ledger []simulator.Effect
	if err := b.ask(ctx, "/_ledger", &ledger); err != nil {
		return err
	}
	keys := map[string]bool{}
	for _, e := range ledger {
		keys[e.EffectKey] = true
	}
	if len(ledger) != n || len(keys) != n {
		return fmt.Errorf("the desk has %d effects under %d keys, want %d of each", len(ledger), len(keys), n)
	}
	return nil
}

func (b brought) ask(ctx context.Context, path string, into any) error {
	answer := harness.Do(ctx, harness.Call{Base: b.desk.URL(), Method: http.MethodGet, Path: path})
	if answer.Err != nil || answer.Status != http.StatusOK {
		return fmt.Errorf("ask the desk for %s: %d %w", path, answer.Status, answer.Err)
	}
	return json.Unmarshal(answer.Body, into)
}
