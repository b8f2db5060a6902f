package server

import (
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics are the numbers about HTTP. Each server has a registry of its own, so that several services can live in one process.
type metrics struct {
	requests   *prometheus.HistogramVec // its _count is the number of requests
	unrecorded prometheus.Counter
}

// From a replay out of memory to an answer that was waited for with Prefer: wait=30.
var durationBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}

func newMetrics(registry *prometheus.Registry, service string, inFlight *atomic.Int64) metrics {
	labels := prometheus.Labels{"service": service}
	m := metrics{
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:        "einmal_http_request_duration_seconds",
			Help:        "Time from the end of a request's headers to its answer, by route pattern, method and status (499: the caller hung up).",
			Buckets:     durationBuckets,
			ConstLabels: labels,
		}, []string{"route", "method", "status"}),
		unrecorded: prometheus.NewCounter(prometheus.CounterOpts{
			Name:        "einmal_denied_unrecorded_total",
			Help:        "Refused attempts without an event, because their account had too many at once; each has its log line.",
			ConstLabels: labels,
		}),
	}
	registry.MustRegister(
		m.requests,
		m.unrecorded,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name:        "einmal_http_requests_in_flight",
			Help:        "Requests that are being answered.",
			ConstLabels: labels,
		}, func() float64 { return float64(inFlight.Load()) }),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

func (m metrics) count(route, method string, status int, took time.Duration) {
	m.requests.WithLabelValues(route, known(method), strconv.Itoa(status)).Observe(took.Seconds())
}

func (m metrics) serve(registry *prometheus.Registry) echo.HandlerFunc {
	return echo.WrapHandler(promhttp.HandlerFor(registry, promhttp.HandlerOpts{DisableCompression: true}))
}

// known keeps callers from making a series for every method they can think of.
func known(method string) string {
	if slices.Contains([]string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}, method) {
		return method
	}
	return "other"
}
