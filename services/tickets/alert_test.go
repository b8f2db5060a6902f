package tickets_test

import (
	"fmt"
	"hash/fnv"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/problem"
	"github.com/einmal/einmal/services/tickets"
)

// alert is one alert as Alertmanager sends it.
type alert map[string]any

// at is when the alerts of these tests began.
const at = "2026-01-02T03:04:05.678Z"

// fires is an alert that fires since at. Its fingerprint follows from what it is called.
func fires(called string) alert {
	hash := fnv.New64()
	hash.Write([]byte(called))
	return alert{
		"status": "firing", "fingerprint": fmt.Sprintf("%016x", hash.Sum64()), "startsAt": at, "endsAt": "0001-01-01T00:00:00Z",
		"labels": map[string]string{"alertname": called, "severity": "page"}, "annotations": map[string]string{"summary": called + " is not well"},
		"generatorURL": "http://127.0.0.1:9090/graph?g0.expr=up",
	}
}

// with is the alert with another member.
func (a alert) with(member string, value any) alert {
	changed := alert{}
	for name, v := range a {
		changed[name] = v
	}
	changed[member] = value
	return changed
}

func (a alert) resolved() alert {
	return a.with("status", "resolved").with("endsAt", "2026-01-02T04:04:05Z")
}

// labeled is the alert with further labels.
func (a alert) labeled(label, value string) alert {
	labels := map[string]string{label: value}
	for name, v := range a["labels"].(map[string]string) {
		labels[name] = v
	}
	return a.with("labels", labels)
}

// event is the source_event_id of the alert's ticket.
func (a alert) event() string { return fmt.Sprint(a["fingerprint"], "@", a["startsAt"]) }

// ticketOfAlert is the one ticket of an alert.
func (r running) ticketOfAlert(t *testing.T, a alert) ticket {
	t.Helper()
	found := r.list(t, "?source_event_id="+url.QueryEscape(a.event())).Items
	if len(found) != 1 {
		t.Errorf("%s has %d tickets", a.event(), len(found))
		return ticket{}
	}
	return found[0]
}

func TestAnAlert(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)

		t.Run("has a ticket that says what it says", func(t *testing.T) {
			a := fires("DiskFull").labeled("project", "db").with("annotations", map[string]string{"summary": " Disk\nfull  on db1", "description": "97 % of /\nis used"})
			s.notified(t, "firing", group(a), receipt{Alerts: 1, Created: 1})
			got := s.ticketOfAlert(t, a)
			want := ticket{
				ID: got.ID, Project: "db", Title: "Disk full on db1", Description: "97 % of /\nis used\n\nhttp://127.0.0.1:9090/graph?g0.expr=up", Priority: "normal",
				Labels: map[string]string{"alertname": "DiskFull", "severity": "page", "project": "db"}, SourceEventID: a.event(), Status: "open", Version: 1,
				CreatedAt: got.CreatedAt, UpdatedAt: got.CreatedAt,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})

		t.Run("has one, however often and in whatever company it is told of", func(t *testing.T) {
			a, b := fires("Again"), fires("Company")
			s.notified(t, "first", group(a), receipt{Alerts: 1, Created: 1})
			was := s.ticketOfAlert(t, a)
			s.notified(t, "the same bytes", group(a), receipt{Alerts: 1, Repeated: 1})
			s.notified(t, "in another group", group(b, a), receipt{Alerts: 2, Created: 1, Repeated: 1})
			s.notified(t, "twice in one", group(a, a), receipt{Alerts: 2, Repeated: 2})
			s.notified(t, "with what is new in another version", group(a.with("silencedBy", []string{"x"})), receipt{Alerts: 1, Repeated: 1})
			s.notified(t, "with another value in its annotations", group(a.with("annotations", map[string]string{"summary": "98 %"})), receipt{Alerts: 1, Repeated: 1})
			s.notified(t, "with its time spelled otherwise", group(a.with("startsAt", "2026-01-02T05:04:05.678000+02:00")), receipt{Alerts: 1, Repeated: 1})
			if diff := cmp.Diff(was, s.ticketOfAlert(t, a)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})

		t.Run("that fires anew is another event", func(t *testing.T) {
			a := fires("Flapping")
			b := a.with("startsAt", "2026-01-02T03:04:05.679Z")
			s.notified(t, "first", group(a), receipt{Alerts: 1, Created: 1})
			s.notified(t, "resolved", group(a.resolved()), receipt{Alerts: 1, Resolved: 1})
			s.notified(t, "again", group(b), receipt{Alerts: 1, Created: 1})
			s.notified(t, "both, late", group(a, a.resolved(), b), receipt{Alerts: 3, Repeated: 3})
			if first, second := s.ticketOfAlert(t, a), s.ticketOfAlert(t, b); first.Status != "resolved" || second.Status != "open" || first.ID == second.ID {
				t.Errorf("%+v, then %+v", first, second)
			}
		})

		t.Run("that is over is resolved, unless a person has closed it", func(t *testing.T) {
			for status, want := range map[string]ticket{
				"open": {Status: "resolved", Version: 2}, "in_progress": {Status: "resolved", Version: 3},
				"resolved": {Status: "resolved", Version: 2}, "closed": {Status: "closed", Version: 2},
			} {
				a := fires("Over" + status)
				s.notified(t, status, group(a), receipt{Alerts: 1, Created: 1})
				id := s.ticketOfAlert(t, a).ID
				if status != "open" {
					s.setStatus(t, id, "set-"+status, `{"status":"`+status+`"}`)
				}
				s.notified(t, status, group(a.resolved()), receipt{Alerts: 1, Resolved: 1})
				s.notified(t, status+", again", group(a.resolved()), receipt{Alerts: 1, Repeated: 1})
				if got := s.now(t, id); got.Status != want.Status || got.Version != want.Version || (got.ClosedAt != "") != (status == "closed") {
					t.Errorf("%s: %+v", status, got)
				}
			}
		})

		t.Run("that is over stays as a person has set it since", func(t *testing.T) {
			a := fires("Person")
			s.notified(t, "firing", group(a), receipt{Alerts: 1, Created: 1})
			s.notified(t, "resolved", group(a.resolved()), receipt{Alerts: 1, Resolved: 1})
			id := s.ticketOfAlert(t, a).ID
			s.setStatus(t, id, "person", `{"status":"in_progress"}`)
			s.notified(t, "once more", group(a.resolved(), a), receipt{Alerts: 2, Repeated: 2})
			if got := s.now(t, id); got.Status != "in_progress" || got.Version != 3 {
				t.Errorf("%+v", got)
			}
		})

		// RB-067: the news may come in another order, or only the last of it.
		t.Run("that is over before anybody heard of it has a ticket that is resolved", func(t *testing.T) {
			a := fires("Late")
			s.notified(t, "resolved", group(a.resolved()), receipt{Alerts: 1, Resolved: 1})
			s.notified(t, "firing, late", group(a), receipt{Alerts: 1, Repeated: 1})
			s.notified(t, "resolved, again", group(a.resolved()), receipt{Alerts: 1, Repeated: 1})
			if got := s.ticketOfAlert(t, a); got.Status != "resolved" || got.Version != 2 {
				t.Errorf("%+v", got)
			}
		})

		t.Run("of which somebody else has told has that ticket", func(t *testing.T) {
			a := fires("Known")
			made := ticketOf(t, create(t, s.agent(), key("known"), `{"project":"alerts","title":"mine","source_event_id":"`+a.event()+`"}`))
			s.notified(t, "firing", group(a), receipt{Alerts: 1, Existing: 1})
			s.notified(t, "resolved", group(a.resolved()), receipt{Alerts: 1, Resolved: 1})
			if got := s.ticketOfAlert(t, a); got.ID != made.ID || got.Title != "mine" || got.Status != "resolved" {
				t.Errorf("%+v", got)
			}
		})

		t.Run("is another account's where another's token brings it", func(t *testing.T) {
			a := fires("Theirs")
			s.notified(t, "ours", group(a), receipt{Alerts: 1, Created: 1})
			var theirs receipt
			s.globex().Send(t, "POST", "/v1/hooks/alertmanager", group(a)).Decode(t, &theirs)
			s.globex().Send(t, "POST", "/v1/hooks/alertmanager", group(a.resolved())).Decode(t, &theirs)
			if got := s.ticketOfAlert(t, a); got.Status != "open" || theirs.Resolved != 1 {
				t.Errorf("%+v, %+v", got, theirs)
			}
		})

		s.healthy(t)
	})
}

// Each alert is an operation of its own, told once, under a key that nobody else can use.
func TestTheOperationsOfAnAlert(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)
		a := fires("Disk")
		for range 3 {
			s.notify(t, group(a))
			s.notify(t, group(a.with("annotations", map[string]string{"summary": "another value"}), a.resolved()))
		}
		type row struct{ IdempotencyKey, Type, State, Route, Principal string }
		var got []row
		if err := s.db.Read(t.Context()).Raw("SELECT idempotency_key, type, state, route, principal FROM operations ORDER BY idempotency_key").Scan(&got).Error; err != nil {
			t.Fatal(err)
		}
		want := []row{
			{"am:" + a.event() + ":firing", "ticket.create", "succeeded", "POST /v1/hooks/alertmanager", "demo-agent"},
			{"am:" + a.event() + ":resolved", "ticket.set_status", "succeeded", "POST /v1/hooks/alertmanager", "demo-agent"},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		var events []string
		if err := s.db.Read(t.Context()).Raw("SELECT type FROM events WHERE type <> 'replayed' ORDER BY type").Scan(&events).Error; err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"attempted", "attempted", "completed", "completed"}, events); diff != "" {
			t.Errorf("events (-want +got)\n%s", diff)
		}
		expect(t, "a key of ours", create(t, s.agent(), key("am:%s:firing", a.event()), `{"project":"ops","title":"t"}`), 400, problem.IdempotencyKeyInvalid)
		s.healthy(t)
	})
}

func TestTheProjectOfAnAlert(t *testing.T) {
	s := start(t, database.SQLite, func(c *tickets.Config) { c.AlertProjectLabel, c.AlertProject = "team", "rest" })
	for team, want := range map[string]string{"db-1": "db-1", "": "rest", "DB": "rest", "d b": "rest", "-db": "rest", strings.Repeat("d", 64): "rest"} {
		a := fires("Of"+team).labeled("team", team).labeled("project", "other")
		s.notified(t, team, group(a), receipt{Alerts: 1, Created: 1})
		if got := s.ticketOfAlert(t, a); got.Project != want || got.Labels["team"] != team {
			t.Errorf("%q: %+v", team, got)
		}
	}

	t.Run("may be another by the time that it is over", func(t *testing.T) {
		a := fires("Moved")
		s.notified(t, "firing", group(a), receipt{Alerts: 1, Created: 1})
		later := startOn(t, s.db, func(c *tickets.Config) { c.AlertProject = "elsewhere" })
		later.notified(t, "resolved", group(a, a.resolved()), receipt{Alerts: 2, Repeated: 1, Resolved: 1})
		if got := later.ticketOfAlert(t, a); got.Project != "rest" || got.Status != "resolved" {
			t.Errorf("%+v", got)
		}
	})
	s.healthy(t)
}

// What is for people is cut to what a ticket holds: there is nobody to whom it could be refused.
func TestAnAlertThatSaysTooMuch(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)
		labels := map[string]string{"alertname": "a", strings.Repeat("n", 65): "left out", "": "left out", "nul\x00": "a\x00b", "zz": strings.Repeat("é", 300)}
		for i := range 40 {
			labels[fmt.Sprintf("l%02d", i)] = "v"
		}
		a := fires("Long").with("labels", labels).with("annotations", map[string]string{"summary": strings.Repeat("é\x00", 200), "description": strings.Repeat("é", 300_000)})
		s.notified(t, "long", group(a), receipt{Alerts: 1, Created: 1})
		got := s.ticketOfAlert(t, a)
		if got.Title != strings.Repeat("é\ufffd", 100) || len(got.Description) != 500_000 || len(got.Labels) != 32 || got.Labels["l30"] != "v" {
			t.Errorf("title %q, %d bytes of description, labels %v", got.Title, len(got.Description), got.Labels)
		}
		bare := alert{"status": "firing", "fingerprint": "a", "startsAt": at}
		s.notified(t, "bare", group(bare), receipt{Alerts: 1, Created: 1})
		if got := s.ticketOfAlert(t, bare); got.Title != "Alert a" || got.Description != "" || got.Project != "alerts" {
			t.Errorf("%+v", got)
		}
		zz := fires("Wide").with("labels", map[string]string{"nul\x00": "a\x00b", "zz": strings.Repeat("é", 300)}).with("annotations", nil)
		s.notified(t, "wide", group(zz), receipt{Alerts: 1, Created: 1})
		if got := s.ticketOfAlert(t, zz); got.Labels["nul\ufffd"] != "a\ufffdb" || got.Labels["zz"] != strings.Repeat("é", 255) {
			t.Errorf("%+v", got)
		}
		broken := strings.Replace(group(fires("Broken").labeled("x", "BYTES")), "BYTES", "\xff\xed\xa0\x80", 1)
		s.notified(t, "bytes that are no text", broken, receipt{Alerts: 1, Created: 1})
		s.healthy(t)
	})
}

// RB-009: the alert that is repeated for longer than an answer is kept, or a key, is still the same.
func TestAnAlertOutlivesItsKeys(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		s := startOn(t, dbtest.OpenWith(t, kind, database.Options{Clock: func() time.Time { return now }}), func(c *tickets.Config) { c.ResponseRetention = time.Hour })
		a := fires("Old")
		s.notified(t, "first", group(a), receipt{Alerts: 1, Created: 1})
		now = now.Add(2 * time.Hour)
		s.notified(t, "past the answer's retention", group(a), receipt{Alerts: 1, Repeated: 1})
		s.notified(t, "resolved then", group(a.resolved()), receipt{Alerts: 1, Resolved: 1})
		now = now.Add(2 * time.Hour)
		s.notified(t, "both past it", group(a, a.resolved()), receipt{Alerts: 2, Repeated: 2})
		if got := s.ticketOfAlert(t, a); got.Status != "resolved" || got.Version != 2 {
			t.Errorf("%+v", got)
		}
		// As when they are forgotten.
		if err := s.db.Read(t.Context()).Exec("DELETE FROM operations").Error; err != nil {
			t.Fatal(err)
		}
		s.notified(t, "without any memory of it", group(a), receipt{Alerts: 1, Existing: 1})
		if got := s.ticketOfAlert(t, a); got.Status != "resolved" || got.Version != 2 {
			t.Errorf("%+v", got)
		}
	})
}
