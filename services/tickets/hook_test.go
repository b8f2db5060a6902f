package tickets_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/problem"
	"github.com/einmal/einmal/pkg/server/servertest"
	"github.com/einmal/einmal/services/tickets"
)

// group is the notification with these alerts.
func group(alerts ...alert) string {
	body, err := json.Marshal(map[string]any{
		"receiver": "einmal", "status": "firing", "alerts": append([]alert{}, alerts...), "groupLabels": map[string]string{}, "commonLabels": map[string]string{},
		"commonAnnotations": map[string]string{}, "externalURL": "http://127.0.0.1:9093", "version": "4", "groupKey": "{}:{}", "truncatedAlerts": 0,
	})
	if err != nil {
		panic(err)
	}
	return string(body)
}

// receipt is the answer to a notification.
type receipt struct {
	Alerts, Created, Existing, Resolved, Repeated, Truncated int
	Rejected                                                 []problem.Violation
}

// rejected are the places of what was rejected.
func (r receipt) rejected() (all []string) {
	for _, v := range r.Rejected {
		all = append(all, v.Pointer)
	}
	return all
}

func (r running) notify(t *testing.T, body string) servertest.Answer {
	t.Helper()
	return r.agent().Send(t, "POST", "/v1/hooks/alertmanager", body)
}

// notified sends a notification and holds the receipt to what it must be.
func (r running) notified(t *testing.T, what, body string, want receipt) receipt {
	t.Helper()
	a := r.notify(t, body)
	var got receipt
	a.Decode(t, &got)
	rejected := got.Rejected
	got.Rejected = nil
	if diff := cmp.Diff(want, got); a.Status != 200 || diff != "" {
		t.Errorf("%s: %s (-want +got)\n%s", what, a, diff)
	}
	got.Rejected = rejected
	return got
}

// What can never be taken is answered 200, named, counted and logged; it does not keep the rest from being done.
func TestAnAlertThatIsNone(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)

		t.Run("does not keep the others from theirs", func(t *testing.T) {
			var alerts []alert
			var want []string
			for i, bad := range []struct {
				alert alert
				at    string
			}{
				{fires("a").with("status", "pending"), "/status"},
				{fires("a").with("status", ""), "/status"},
				{fires("a").with("status", nil), "/status"},
				{fires("a").with("status", "Firing"), "/status"},
				{fires("a").with("fingerprint", ""), "/fingerprint"},
				{fires("a").with("fingerprint", nil), "/fingerprint"},
				{fires("a").with("fingerprint", "a b"), "/fingerprint"},
				{fires("a").with("fingerprint", "a@b"), "/fingerprint"},
				{fires("a").with("fingerprint", "a:b"), "/fingerprint"},
				{fires("a").with("fingerprint", "é"), "/fingerprint"},
				{fires("a").with("fingerprint", strings.Repeat("a", 65)), "/fingerprint"},
				{fires("a").with("startsAt", ""), "/startsAt"},
				{fires("a").with("startsAt", nil), "/startsAt"},
				{fires("a").with("startsAt", "0001-01-01T00:00:00Z"), "/startsAt"},
				{fires("a").with("startsAt", "2026-01-02 03:04:05"), "/startsAt"},
				{fires("a").with("startsAt", "2026-02-30T03:04:05Z"), "/startsAt"},
				{fires("a").with("startsAt", "yesterday"), "/startsAt"},
				{fires("a").with("startsAt", 1767323045), ""},
				{fires("a").with("fingerprint", 4711), ""},
				{fires("a").with("status", true), ""},
				{fires("a").with("labels", []string{"a"}), ""},
				{fires("a").with("labels", map[string]any{"a": 1}), ""},
				{fires("a").with("annotations", "secret-of-the-body"), ""},
			} {
				alerts = append(alerts, bad.alert, fires(fmt.Sprint("Good", i)))
				want = append(want, fmt.Sprintf("/alerts/%d%s", 2*i, bad.at))
			}
			n := len(want)
			got := s.notified(t, "mixed", group(alerts...), receipt{Alerts: 2 * n, Created: n})
			if diff := cmp.Diff(want, got.rejected()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			s.notified(t, "mixed, again", group(alerts...), receipt{Alerts: 2 * n, Repeated: n})
			if found := len(s.list(t, "?limit=200").Items); found != n {
				t.Errorf("%d tickets", found)
			}
		})

		t.Run("may be no alert at all", func(t *testing.T) {
			for _, raw := range []string{`1`, `null`, `"a"`, `[]`, `{}`, `{"status":"firing","status":"resolved"}`} {
				got := s.notified(t, raw, strings.Replace(group(fires("In")), `"alerts":[`, `"alerts":[`+raw+`,`, 1), receipt{Alerts: 2, Created: btoi(raw == "1"), Repeated: btoi(raw != "1")})
				if len(got.Rejected) != 1 || !strings.HasPrefix(got.Rejected[0].Pointer, "/alerts/0") {
					t.Errorf("%s: %+v", raw, got)
				}
			}
		})

		t.Run("nor the whole a notification", func(t *testing.T) {
			for body, at := range map[string]string{
				"": "", "{": "", "[]": "", "null": "", `"4"`: "", "secret-of-the-body": "", `{"version":"4"}`: "", `{"version":"4","alerts":null}`: "", `{"version":"4","alerts":{}}`: "",
				`{"version":4,"alerts":[]}`: "", `{"alerts":[]}`: "/version", `{"version":"3","alerts":[]}`: "/version", `{"version":"5","alerts":[]}`: "/version",
				group(fires("After")) + "{}": "", `{"version":"4","alerts":[` + strings.Repeat(" ", 16<<20) + `]}`: "",
			} {
				got := s.notified(t, body[:min(60, len(body))], body, receipt{})
				if diff := cmp.Diff([]string{at}, got.rejected()); diff != "" {
					t.Errorf("%.60s (-want +got)\n%s", body, diff)
				}
			}
			s.notified(t, "one without alerts", group(), receipt{})

			const many = 100_000
			got := s.notified(t, "many", `{"version":"4","alerts":[`+strings.Repeat("1,", many-1)+`1]}`, receipt{Alerts: many})
			if len(got.Rejected) != 100 {
				t.Errorf("%d are told of", len(got.Rejected))
			}
		})

		t.Run("and what Alertmanager has left out is counted", func(t *testing.T) {
			s.notified(t, "truncated", strings.Replace(group(fires("Some")), `"truncatedAlerts":0`, `"truncatedAlerts":7`, 1), receipt{Alerts: 1, Created: 1, Truncated: 7})
		})

		t.Run("which shows in the metrics, and in a log without what the body says", func(t *testing.T) {
			metrics := s.metrics(t)
			for _, line := range []string{
				`einmal_alerts_total{outcome="created",service="tickets"} 25`, `einmal_alerts_total{outcome="rejected",service="tickets"} 100067`,
				`einmal_alerts_total{outcome="repeated",service="tickets"} 28`, `einmal_alerts_total{outcome="truncated",service="tickets"} 7`,
				`einmal_alerts_total{outcome="deferred",service="tickets"} 0`, `einmal_alerts_total{outcome="resolved",service="tickets"} 0`,
			} {
				if !strings.Contains(metrics, line+"\n") {
					t.Errorf("no %s in\n%s", line, metrics)
				}
			}
			text := s.secrets.Logged()
			if !strings.Contains(text, `"msg":"alerts not taken"`) || !strings.Contains(text, `"rejected":23`) || !strings.Contains(text, "/alerts/0/status") {
				t.Errorf("%s", text)
			}
			for _, secret := range []string{"secret-of-the-body", "Good1", "is not well"} {
				if strings.Contains(text, secret) {
					t.Errorf("%q is in the log", secret)
				}
			}
		})
	})
}

// metrics are those about alerts.
func (r running) metrics(t *testing.T) (lines string) {
	t.Helper()
	response, err := http.Get(r.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(body)) {
		if strings.HasPrefix(line, "einmal_alerts_total") {
			lines += line
		}
	}
	return lines
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// The hook takes no key, and every token that may write.
func TestWhoMayNotify(t *testing.T) {
	s := start(t, database.SQLite, func(c *tickets.Config) { c.TokensFile, c.Demo, c.RateLimit, c.RateBurst = tokens(t), false, 0.001, 2 })
	body := group(fires("Disk"))
	send := func(token string, headers ...string) servertest.Answer {
		return s.As(token).Send(t, "POST", "/v1/hooks/alertmanager", body, headers...)
	}
	expect(t, "nobody", send(""), 401, problem.Unauthenticated)
	expect(t, "a stranger", send("stranger"), 401, problem.Unauthenticated)
	expect(t, "approver", send("approver"), 403, problem.Forbidden)
	expect(t, "auditor", send("auditor"), 403, problem.Forbidden)
	expect(t, "GET", s.As("agent").Send(t, "GET", "/v1/hooks/alertmanager", ""), 405, problem.MethodNotAllowed)
	expect(t, "another hook", s.As("agent").Send(t, "POST", "/v1/hooks/psp", body), 404, problem.RouteNotFound)
	if n := s.count(t, "operations"); n != 0 {
		t.Errorf("%d operations", n)
	}
	if a := send("agent", key("a key of the sender's, which counts for nothing")); a.Status != 200 {
		t.Errorf("%s", a)
	}
	if a := send("operator"); a.Status != 200 {
		t.Errorf("%s", a)
	}
	if a := send("agent"); a.Header.Get("Retry-After") == "" {
		expect(t, "too often", a, 429, problem.RateLimited)
	}
	if n := s.count(t, "tickets"); n != 1 {
		t.Errorf("%d tickets", n)
	}
	s.healthy(t)
}

// RB-057, RB-109: several Alertmanagers at once, in chunks of unknown length.
func TestNotificationsAtOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		db := dbtest.Open(t, kind)
		replicas := []running{startOn(t, db), startOn(t, db)}
		var alerts []alert
		for i := range 20 {
			alerts = append(alerts, fires(fmt.Sprint("Disk", i)))
		}
		for i := range 10 {
			alerts = append(alerts, alerts[i].resolved())
		}
		body := group(alerts...)
		var all sync.WaitGroup
		for i := range 6 {
			all.Go(func() {
				for { // as Alertmanager does after a 5xx
					s := replicas[i%2]
					request, err := s.agent().Request(t, "POST", "/v1/hooks/alertmanager", strings.NewReader(body))
					if err != nil {
						t.Error(err)
						return
					}
					answer, err := s.Exchange(t, request)
					if err == nil && answer.Status == 200 {
						return
					}
					if err != nil || answer.Problem(t).Code != problem.StoreUnavailable {
						t.Errorf("%s %v", answer, err)
						return
					}
				}
			})
		}
		all.Wait()
		s := replicas[0]
		for i := range 20 {
			want := map[bool]string{true: "resolved", false: "open"}[i < 10]
			if got := s.ticketOfAlert(t, alerts[i]); got.Status != want {
				t.Errorf("%s: %+v", want, got)
			}
		}
		if tickets, operations := s.count(t, "tickets"), s.count(t, "operations"); tickets != 20 || operations != 30 {
			t.Errorf("%d tickets, %d operations", tickets, operations)
		}
		s.healthy(t)
	})
}

// A database that fails in the middle of a notification costs an answer of 503, and nothing of what was done or is to be done.
func TestANotificationThatIsCutShort(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)
		body := group(fires("One"), fires("Two"), fires("Three"))
		s.notified(t, "one alone", group(fires("One")), receipt{Alerts: 1, Created: 1})

		exec := func(statement string) {
			if err := s.db.Read(t.Context()).Exec(statement).Error; err != nil {
				t.Fatal(err)
			}
		}
		// One is repeated, which needs no tickets; the others fail: first in a way that a migration ends, then in one that nobody foresaw.
		exec("ALTER TABLE tickets RENAME TO hidden")
		expect(t, "without its table", s.notify(t, body), 503, problem.StoreUnavailable)
		exec("ALTER TABLE hidden RENAME TO tickets")
		exec("CREATE UNIQUE INDEX tickets_one ON tickets (account_id)")
		expect(t, "with an index of somebody else's", s.notify(t, body), 500, problem.InternalError)
		exec("DROP INDEX tickets_one")
		if n := s.count(t, "operations"); n != 1 {
			t.Errorf("%d operations", n)
		}
		s.notified(t, "again", body, receipt{Alerts: 3, Created: 2, Repeated: 1})
		s.healthy(t)
	})
}

// A row, or the whole database, that somebody else holds for too long is a reason to come again.
func TestANotificationInABusyDatabase(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		dbURL := dbtest.URL(t, kind)
		s := startOn(t, dbtest.Connect(t, dbURL, database.Options{LockTimeout: 50 * time.Millisecond}))
		holder := dbtest.Connect(t, dbURL, database.Options{})
		body := group(fires("Two"), fires("One"), fires("One").resolved())
		s.notified(t, "one alone", group(fires("One")), receipt{Alerts: 1, Created: 1})
		err := holder.InTx(t.Context(), func(tx database.Tx) error {
			if err := lockTickets(tx, kind); err != nil {
				return err
			}
			a := s.notify(t, body)
			p := expect(t, "held", a, 503, problem.StoreUnavailable)
			if p.Effect != problem.EffectUnknown || p.Retry != problem.RetrySameKey || a.Header.Get("Retry-After") == "" || !strings.HasPrefix(p.Detail, "2 of 3 alerts") {
				t.Errorf("%s", a)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		s.notified(t, "again", body, receipt{Alerts: 3, Created: 1, Resolved: 1, Repeated: 1})
		if !strings.Contains(s.metrics(t), `einmal_alerts_total{outcome="deferred",service="tickets"} 2`) {
			t.Error(s.metrics(t))
		}
		s.healthy(t)
	})
}

// Who hangs up in the middle finds done what was done, and the rest when they come again.
func TestAnAlertmanagerThatHangsUp(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)
		half := group(fires("One"))
		reader, writer := io.Pipe()
		request, err := s.agent().Request(t, "POST", "/v1/hooks/alertmanager", reader)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = s.Exchange(t, request)
		}()
		_, _ = io.WriteString(writer, half[:len(half)/2])
		writer.CloseWithError(io.ErrUnexpectedEOF)
		<-done
		if n := s.count(t, "operations"); n != 0 {
			t.Errorf("%d operations of half a notification", n)
		}
		s.notified(t, "all of it", half, receipt{Alerts: 1, Created: 1})
	})
}
