package outbox

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/einmal/einmal/pkg/approval"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/review"
)

const (
	// countWithin bounds what is counted for people: a million open effects take less, and whoever scrapes waits for it.
	countWithin = 2 * time.Second

	// countEvery is how long what was counted is told again: anybody may read /metrics, as often as they like.
	countEvery = 10 * time.Second
)

// Metrics are the numbers of an outbox for whoever operates it: what is open, what a person has to decide, and what sends have
// shown. The first two are the database's, the same from every replica, and of all accounts; they are left out while it can't be
// read. The last are this process's.
func (o *Outbox) Metrics() prometheus.Collector {
	of := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, prometheus.Labels{"service": o.service})
	}
	return &metrics{
		box:    o,
		open:   of("einmal_effects_open", "Effects that are queued, running or unknown, in the database.", "target", "state"),
		oldest: of("einmal_effects_oldest_unknown_seconds", "Time since the first send of the effect that is unknown and was sent first; 0: none is unknown.", "target"),
		waits:  of("einmal_approvals_open", "Questions of approval that nobody has answered, in the database."),
		asked:  of("einmal_reviews_open", "Reviews that nobody has resolved, in the database.", "kind"),
		late:   of("einmal_reviews_overdue", "Open reviews whose due_at has passed.", "kind"),
	}
}

func newSends(service string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "einmal_sends_total", Help: "Sends to a target by what each has shown.", ConstLabels: prometheus.Labels{"service": service},
	}, []string{"target", "finding"})
}

type metrics struct {
	box                              *Outbox
	open, oldest, waits, asked, late *prometheus.Desc

	mu      sync.Mutex
	counted time.Time
	gauges  []prometheus.Metric
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(to chan<- *prometheus.Desc) {
	m.box.sends.Describe(to)
	for _, d := range []*prometheus.Desc{m.open, m.oldest, m.waits, m.asked, m.late} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	m.box.sends.Collect(to)
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := m.box.db.Now(); now.Sub(m.counted) >= countEvery {
		var err error
		if m.gauges, err = m.count(now); err != nil {
			m.box.log.Warn("open effects and reviews not counted", slog.Any("error", err))
		}
		m.counted = now
	}
	for _, g := range m.gauges {
		to <- g
	}
}

func (m *metrics) count(now time.Time) (all []prometheus.Metric, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), countWithin)
	defer cancel()
	gauge := func(of *prometheus.Desc, value float64, labels ...string) {
		all = append(all, prometheus.MustNewConstMetric(of, prometheus.GaugeValue, value, labels...))
	}
	open, err := m.box.countOpen(ctx)
	if err != nil {
		return nil, err
	}
	for name := range m.box.targets { // also where there is nothing: an alert on what is missing never fires
		for _, state := range []idempotency.State{idempotency.Queued, idempotency.Running, idempotency.Unknown} {
			open[openOf{name, state}] += 0
		}
	}
	for of, n := range open {
		gauge(m.open, float64(n), of.Target, string(of.State))
		if of.State != idempotency.Unknown {
			continue
		}
		since, err := m.box.oldestUnknown(ctx, of.Target, now)
		if err != nil {
			return nil, err
		}
		gauge(m.oldest, now.Sub(since).Seconds(), of.Target)
	}
	waiting, err := approval.CountPending(ctx, m.box.db)
	if err != nil {
		return nil, err
	}
	gauge(m.waits, float64(waiting))
	reviews, err := review.CountOpen(ctx, m.box.db, now)
	if err != nil {
		return nil, err
	}
	for kind, n := range reviews {
		gauge(m.asked, float64(n.Open), string(kind))
		gauge(m.late, float64(n.Overdue), string(kind))
	}
	return all, nil
}

// openOf is what open effects are counted by.
type openOf struct {
	Target string
	State  idempotency.State
}

// countOpen counts the effects of all accounts that are queued, running or unknown, by the indexes of the lanes. What waits for an
// approval is in none of them; no target is needed for it yet.
func (o *Outbox) countOpen(ctx context.Context) (map[openOf]int64, error) {
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

// oldestUnknown is when the unknown effect of a target was first sent that was sent first, or now.
func (o *Outbox) oldestUnknown(ctx context.Context, target string, now time.Time) (time.Time, error) {
	var since []time.Time
	err := o.db.Read(ctx).Table("effects").Where("target = ? AND state = ?", target, idempotency.Unknown).Where(toAsk).
		Order("first_sent_at").Limit(1).Pluck("first_sent_at", &since).Error
	switch {
	case err != nil:
		return now, database.Classify(fmt.Errorf("read oldest unknown effect: %w", err))
	case len(since) == 0:
		return now, nil
	}
	return since[0], nil
}
