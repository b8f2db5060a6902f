package outbox

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/einmal/einmal/pkg/catalogue"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/review"
)

// scrape reads the numbers as a monitoring system does, line by line.
func scrape(t *testing.T, metrics prometheus.Collector) (lines []string) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(metrics)
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	if answer.Code != http.StatusOK {
		t.Fatalf("%d %s", answer.Code, answer.Body)
	}
	for line := range strings.Lines(answer.Body.String()) {
		if !strings.HasPrefix(line, "#") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := newStage(t, dbtest.URL(t, kind), unable)
		s.target.Name = "desk"
		s.build()
		metrics := s.box.Metrics()

		t.Run("are there before anything has happened", func(t *testing.T) {
			want := []string{
				`einmal_approvals_open{service="tickets"} 0`,
				`einmal_effects_oldest_unknown_seconds{service="tickets",target="desk"} 0`,
				`einmal_effects_open{service="tickets",state="queued",target="desk"} 0`,
				`einmal_effects_open{service="tickets",state="running",target="desk"} 0`,
				`einmal_effects_open{service="tickets",state="unknown",target="desk"} 0`,
				`einmal_reviews_open{kind="contradiction",service="tickets"} 0`,
				`einmal_reviews_open{kind="deadline",service="tickets"} 0`,
				`einmal_reviews_open{kind="unknown",service="tickets"} 0`,
				`einmal_reviews_open{kind="unmatched",service="tickets"} 0`,
				`einmal_reviews_overdue{kind="contradiction",service="tickets"} 0`,
				`einmal_reviews_overdue{kind="deadline",service="tickets"} 0`,
				`einmal_reviews_overdue{kind="unknown",service="tickets"} 0`,
				`einmal_reviews_overdue{kind="unmatched",service="tickets"} 0`,
			}
			if diff := cmp.Diff(want, scrape(t, metrics)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})

		s.send(s.accept("done"))
		s.desk.onSend = always(Ambiguous)
		s.send(s.accept("unknown"))
		s.clock.advance(9 * time.Hour)
		s.send(s.accept("unknown for less long"))
		s.accept("queued")
		s.acceptOf(s.account, "first", catalogue.DeploymentCancel)
		s.acceptIn(idempotency.AwaitingApproval, s.account, "waits", catalogue.TicketMirror)
		s.take(s.accept("running"))
		s.ok(s.inTx(func(tx database.Tx) error {
			_, err := review.Open(tx, review.Question{AccountID: "globex", Kind: review.Unmatched})
			return err
		}))
		want := []string{
			`einmal_approvals_open{service="tickets"} 1`,
			`einmal_effects_oldest_unknown_seconds{service="tickets",target="desk"} 32400`,
			`einmal_effects_open{service="tickets",state="queued",target="desk"} 2`,
			`einmal_effects_open{service="tickets",state="running",target="desk"} 1`,
			`einmal_effects_open{service="tickets",state="unknown",target="desk"} 2`,
			`einmal_reviews_open{kind="contradiction",service="tickets"} 0`,
			`einmal_reviews_open{kind="deadline",service="tickets"} 0`,
			`einmal_reviews_open{kind="unknown",service="tickets"} 2`,
			`einmal_reviews_open{kind="unmatched",service="tickets"} 1`,
			`einmal_reviews_overdue{kind="contradiction",service="tickets"} 0`,
			`einmal_reviews_overdue{kind="deadline",service="tickets"} 0`,
			`einmal_reviews_overdue{kind="unknown",service="tickets"} 1`,
			`einmal_reviews_overdue{kind="unmatched",service="tickets"} 0`,
			`einmal_sends_total{finding="ambiguous",service="tickets",target="desk"} 2`,
			`einmal_sends_total{finding="confirmed",service="tickets",target="desk"} 1`,
		}
		t.Run("say what is open in the database, for how long, and what sends have shown", func(t *testing.T) {
			got := scrape(t, metrics)
			got[1] = strings.Split(got[1], ".")[0] // the ticks of the clock
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
		t.Run("are counted no more often than every ten seconds", func(t *testing.T) {
			s.accept("another")
			queued := func() string { return scrape(t, metrics)[2] }
			if got := queued(); got != want[2] {
				t.Errorf("counted again: %s", got)
			}
			s.clock.advance(countEvery)
			if got := queued(); got != strings.Replace(want[2], "2", "3", 1) {
				t.Errorf("not counted again: %s", got)
			}
		})
		t.Run("tell of effects for targets that this process does not serve", func(t *testing.T) {
			other := s.target
			other.Name = "another desk"
			box, err := New(Deps{DB: s.db, Exec: s.exec, Log: s.box.log, Record: s.record, Service: "tickets", PollEvery: time.Minute}, other)
			s.ok(err)
			if lines := strings.Join(scrape(t, box.Metrics()), "\n"); !strings.Contains(lines, `state="queued",target="desk"} 3`) {
				t.Errorf("%s", lines)
			}
		})
		t.Run("leave out what can't be counted, rather than all", func(t *testing.T) {
			s.clock.advance(countEvery)
			lost := dbtest.Connect(t, dbtest.URL(t, kind), database.Options{Clock: s.clock.now})
			s.ok(lost.Close())
			s.box.db = lost
			defer func() { s.box.db = s.db }()
			if diff := cmp.Diff(want[len(want)-2:], scrape(t, metrics)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	})
}
