package tickets

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/idempotency/idemhttp"
	"github.com/einmal/einmal/pkg/problem"
	"github.com/einmal/einmal/pkg/server"
)

const (
	// maxNotification is how much of a notification is read. Alertmanager puts a whole group into one, some 700 bytes an alert: this holds more than
	// ten thousand. Who has more sets max_alerts there.
	maxNotification = 16 << 20

	// notificationBudget is how long one notification is worked on. It is below what the connection allows, and what is done by then stays done: sent
	// again, as Alertmanager does after a 5xx, the notification gets further.
	notificationBudget = 30 * time.Second
)

// alertmanager takes the notifications of Prometheus Alertmanager. For each alert in them it makes the key by itself, so that an alert has one
// ticket and is resolved once, however often, by how many and in which groups it is told of.
//
// Alertmanager repeats what is answered 5xx within seconds, and what is answered 4xx with every group_interval for ever. So an answer of 5xx says
// that a later try can help; what can never succeed is answered 200, counted and logged.
type alertmanager struct {
	commands     commands
	projectLabel string // names the project of an alert,
	otherwise    string // and this is the project of the rest
	counts       alertCounts
	log          *slog.Logger
}

// notify answers POST /v1/hooks/alertmanager.
func (h alertmanager) notify(c echo.Context) error {
	body, err := io.ReadAll(io.LimitReader(c.Request().Body, maxNotification+1))
	if err != nil { // the caller broke off; the answer is for whoever may still listen
		return problem.New(problem.MalformedBody, "The body ended before it was complete.")
	}
	who := caller(c)
	req := idempotency.Request{
		Principal: who.Principal, RequestID: server.RequestID(c),
		Command: idempotency.Command{Account: who.Account, Method: c.Request().Method, Path: c.Request().URL.Path},
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), notificationBudget)
	defer cancel()

	r := h.take(ctx, req, body)
	h.counts.add(r)
	h.report(c, r)
	if r.deferred > 0 {
		p := problem.New(problem.StoreUnavailable, fmt.Sprintf("%d of %d alerts could not be taken now. Send the notification again: what is done stays done, and the rest is tried.", r.deferred, r.Alerts))
		p.Effect = problem.EffectUnknown
		return p
	}
	if r.failure != nil {
		return r.failure
	}
	return idemhttp.WriteResource(c, r)
}

// report writes to the log what the answer does not tell anybody, without anything that the body says.
func (h alertmanager) report(c echo.Context, r receipt) {
	if r.allRejected == 0 && r.Truncated == 0 && r.deferred == 0 && r.failure == nil {
		return
	}
	attrs := []slog.Attr{
		slog.String("service", Name), slog.String("request_id", server.RequestID(c)), slog.Int("alerts", r.Alerts),
		slog.Int("rejected", r.allRejected), slog.Int64("truncated", r.Truncated), slog.Int("deferred", r.deferred),
	}
	if r.allRejected > 0 {
		attrs = append(attrs, slog.String("first", r.Rejected[0].Pointer+" "+r.Rejected[0].Detail))
	}
	if r.failure != nil {
		attrs = append(attrs, slog.String("error", r.failure.Error()))
	}
	h.log.LogAttrs(c.Request().Context(), slog.LevelWarn, "alerts not taken", attrs...)
}

// alertCounts counts what became of alerts.
type alertCounts struct{ total *prometheus.CounterVec }

func newAlertCounts(registry *prometheus.Registry) alertCounts {
	total := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "einmal_alerts_total",
		Help: "Alerts that Alertmanager has told of, each time it did: created, existing (somebody else had made the ticket), resolved, repeated, " +
			"rejected (can never be taken; a whole notification counts once), truncated (left out by Alertmanager), deferred (to be sent again).",
		ConstLabels: prometheus.Labels{"service": Name},
	}, []string{"outcome"})
	registry.MustRegister(total)
	counts := alertCounts{total}
	counts.add(receipt{}) // so that each is there at 0, and its first step is seen
	return counts
}

func (a alertCounts) add(r receipt) {
	for outcome, n := range map[string]int64{
		"created": int64(r.Created), "existing": int64(r.Existing), "resolved": int64(r.Resolved), "repeated": int64(r.Repeated),
		"rejected": int64(r.allRejected), "truncated": r.Truncated, "deferred": int64(r.deferred),
	} {
		a.total.WithLabelValues(outcome).Add(float64(n))
	}
}
