package retention

import "github.com/prometheus/client_golang/prometheus"

// Metrics are the numbers of this process's purges.
func (p *Purger) Metrics() prometheus.Collector { return p.removed }

func newRemoved(deps Deps) *prometheus.CounterVec {
	removed := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "einmal_purged_total", Help: "What this process has taken from the database after its retention.", ConstLabels: prometheus.Labels{"service": deps.Service},
	}, []string{"what"})
	for _, what := range []string{expired, forgotten} {
		removed.WithLabelValues(what) // also where there was nothing: an alert on what is missing never fires
	}
	for _, s := range deps.Also {
		removed.WithLabelValues(s.What)
	}
	return removed
}
