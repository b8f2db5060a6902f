package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"
)

// warmUp is how long callers run before they are measured: connections are accepted, and those of the pool have prepared the
// statements.
const warmUp = 100 * time.Millisecond

// measurement is what one variant did with one number of callers in one round.
type measurement struct {
	requests  int
	perSecond float64
	p50, p99  time.Duration
	spent     usage // by all requests
}

// cpuPerRequest is that of callers, service and database together.
func (m measurement) cpuPerRequest() time.Duration {
	return (m.spent.cpu + m.spent.postgres) / time.Duration(m.requests)
}

// measure runs callers against a service for as long as asked, and checks what they left behind.
func measure(ctx context.Context, v variant, t *target, conns int, duration time.Duration) (m measurement, err error) {
	callers := make([]*caller, 0, conns)
	defer func() {
		for _, c := range callers {
			c.close()
		}
	}()
	for range conns {
		connection, err := dial(t.addr)
		if err != nil {
			return m, err
		}
		callers = append(callers, &caller{client: connection, among: conns})
	}
	if v.prepare != nil {
		if err := together(callers, v.prepare); err != nil {
			return m, fmt.Errorf("prepare: %w", err)
		}
	}
	warm, err := drive(ctx, v, t, callers, warmUp)
	if err != nil {
		return m, fmt.Errorf("warm up: %w", err)
	}
	runtime.GC() // nobody pays for the garbage of the variant before
	m, err = drive(ctx, v, t, callers, duration)
	if err != nil {
		return m, err
	}
	for _, c := range callers {
		t.sent = t.sent.plus(aCreation.times(len(c.originals)))
	}
	t.sent = t.sent.plus(v.leaves.times(warm.requests + m.requests))
	return m, t.check(ctx)
}

// drive lets every caller send one request after another. Any answer but the expected one fails it.
func drive(ctx context.Context, v variant, t *target, callers []*caller, duration time.Duration) (m measurement, err error) {
	processes, err := t.processes(ctx)
	if err != nil {
		return m, err
	}
	before := usageOf(processes)
	began := time.Now()
	err = together(callers, func(c *caller) error {
		c.took = slices.Grow(c.took[:0], 1<<15)
		for last := time.Now(); last.Sub(began) < duration; {
			if err := errors.Join(ctx.Err(), c.once(v)); err != nil {
				return err
			}
			now := time.Now()
			c.took = append(c.took, now.Sub(last))
			last = now
		}
		return nil
	})
	elapsed, spent := time.Since(began), usageOf(processes).since(before)
	if err != nil {
		return m, err
	}
	var took []time.Duration
	for _, c := range callers {
		took = append(took, c.took...)
	}
	slices.Sort(took)
	n := len(took)
	if n == 0 {
		return m, fmt.Errorf("no caller sent a request within %s", duration)
	}
	return measurement{
		requests: n, perSecond: float64(n) / elapsed.Seconds(), p50: took[n/2], p99: took[n*99/100], spent: spent,
	}, nil
}

// once sends one request and holds its answer against what the variant says.
func (c *caller) once(v variant) error {
	key, body := v.request(c)
	a, err := c.post(key, body)
	switch {
	case err != nil:
		return err
	case a.status != v.status || string(a.outcome) != v.outcome:
		return fmt.Errorf("answered %d %q instead of %d %q: %s", a.status, a.outcome, v.status, v.outcome, a.body)
	case v.sameBody && !bytes.Equal(a.body, c.originals[c.turn].answer):
		return fmt.Errorf("replayed %s instead of %s", a.body, c.originals[c.turn].answer)
	}
	return nil
}

// together runs f for all callers at once and waits for them.
func together(callers []*caller, f func(*caller) error) error {
	errs := make([]error, len(callers))
	var all sync.WaitGroup
	for i, c := range callers {
		all.Go(func() { errs[i] = f(c) })
	}
	all.Wait()
	return errors.Join(errs...)
}
