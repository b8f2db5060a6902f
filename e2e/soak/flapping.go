package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/einmal/einmal/e2e/harness"
)

// Alerts fire and are over for a random time between these. A shorter one could come and go between two looks of Alertmanager, which then tells nobody.
const (
	leastLasting = 8 * time.Second
	mostLasting  = 40 * time.Second

	// groups is how many groups of alerts there are, each a notification of its own.
	groups = 20

	// evaluateEvery is how often Prometheus looks at its rules.
	evaluateEvery = time.Second
)

// flapping is Prometheus: it tells both Alertmanagers of alerts that come and go.
type flapping struct {
	monitors []*harness.Alertmanager
	rand     *rand.Rand

	mu     sync.Mutex
	alerts []flappingAlert
	begun  int // how often one has begun to fire
}

type flappingAlert struct {
	harness.Alert
	fires   bool
	changes time.Time // when it does so next
}

func newFlapping(monitors []*harness.Alertmanager, n int, rand *rand.Rand) *flapping {
	f := &flapping{monitors: monitors, rand: rand}
	for i := range n {
		f.alerts = append(f.alerts, flappingAlert{
			Alert: harness.Alert{
				Labels:      map[string]string{"alertname": fmt.Sprintf("Alert%02d", i%groups), "instance": fmt.Sprintf("db%d", i), "project": "ops"},
				Annotations: map[string]string{"summary": fmt.Sprintf("db%d is not well", i)},
			},
			changes: time.Now().Add(f.lasting() / 2),
		})
	}
	return f
}

// run lets alerts come and go for a time. In the end some fire, and go on to.
func (f *flapping) run(ctx context.Context, duration time.Duration) error {
	end := time.After(duration)
	evaluate := time.NewTicker(evaluateEvery)
	defer evaluate.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-end:
			return nil
		case <-evaluate.C:
		}
		changed := f.change(time.Now())
		if len(changed) == 0 {
			continue
		}
		for _, monitor := range f.monitors {
			if err := monitor.Tell(ctx, changed...); err != nil {
				return err
			}
		}
	}
}

// change lets alerts begin or end whose time has come.
func (f *flapping) change(now time.Time) (changed []harness.Alert) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.alerts {
		a := &f.alerts[i]
		if now.Before(a.changes) {
			continue
		}
		if a.fires = !a.fires; a.fires {
			a.StartsAt, a.EndsAt = now.UTC(), time.Time{}
			f.begun++
		} else {
			a.EndsAt = now.UTC()
		}
		a.changes = now.Add(f.lasting())
		changed = append(changed, a.Alert)
	}
	return changed
}

func (f *flapping) lasting() time.Duration {
	return leastLasting + time.Duration(f.rand.Int64N(int64(mostLasting-leastLasting)))
}

// firing is how many alerts fire now.
func (f *flapping) firing() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.alerts {
		if a.fires {
			n++
		}
	}
	return n
}
