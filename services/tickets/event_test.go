package tickets_test

import (
	"fmt"
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

// RB-057: several senders report one event at the same time, each with a key of its own.
func TestAnEventHasOneTicket(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)
		const senders = 16
		answers := make([]servertest.Answer, senders)
		var all sync.WaitGroup
		for i := range senders {
			client := s.As([]string{"demo-agent", "demo-agent-2", "demo-operator"}[i%3])
			all.Go(func() {
				answers[i] = create(t, client, key("sender%d", i), `{"project":"ops","title":"Disk full","source_event_id":"e"}`)
			})
		}
		all.Wait()

		made := 0
		first := ticketOf(t, answers[0])
		for i, a := range answers {
			got := ticketOf(t, a)
			switch {
			case a.Status == 201 && got.Disposition == "created" && got.ContentMatches == nil:
				made++
			case a.Status == 200 && got.Disposition == "existing" && got.ContentMatches != nil && *got.ContentMatches:
			default:
				t.Errorf("sender %d: %s", i, a)
			}
			if got.ID != first.ID || a.Outcome() != "executed" || a.Header.Get("Location") != "/v1/tickets/"+first.ID {
				t.Errorf("sender %d got %s at %s, %s; the first got %s", i, got.ID, a.Header.Get("Location"), a.Outcome(), first.ID)
			}
		}
		if found := s.list(t, "?source_event_id=e").ids(); made != 1 || len(found) != 1 {
			t.Errorf("%d were told that they made it; there are %v", made, found)
		}
		// Each sender's retry gets the answer that it got.
		for i, a := range answers {
			again := create(t, s.agent(), key("sender%d", i), `{"project":"ops","title":"Disk full","source_event_id":"e"}`)
			if again.Status != a.Status || again.Outcome() != "replayed" || string(again.Body) != string(a.Body) {
				t.Errorf("sender %d: %s, and again %s", i, a, again)
			}
		}
		s.healthy(t)
	})
}

func TestAnExistingTicketIsLeftAsItIs(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)
		report := func(title, description, priority, labels string) string {
			return fmt.Sprintf(`{"project":"ops","source_event_id":"e","title":%q,"description":%q,"priority":%q,"labels":%s}`, title, description, priority, labels)
		}
		first := ticketOf(t, create(t, s.agent(), key("first"), report("t", "d", "high", `{"a":"1"}`)))

		for i, c := range []struct {
			body    string
			matches bool
		}{
			{report("t", "d", "high", `{"a":"1"}`), true},
			{report("T", "d", "high", `{"a":"1"}`), false},
			{report("t", "", "high", `{"a":"1"}`), false},
			{report("t", "d", "normal", `{"a":"1"}`), false},
			{report("t", "d", "high", `{"a":"2"}`), false},
			{report("t", "d", "high", `{}`), false},
			{report("t", "d", "high", `{"a":"1","b":""}`), false},
		} {
			a := create(t, s.agent(), key("again%d", i), c.body)
			want := first
			want.Disposition, want.ContentMatches = "existing", &c.matches
			if diff := cmp.Diff(want, ticketOf(t, a)); a.Status != 200 || diff != "" {
				t.Errorf("%s: %s (-want +got)\n%s", c.body, a, diff)
			}
		}

		// RB-065: whatever has become of the ticket since, also what no route changes.
		if err := s.db.Read(t.Context()).Exec("UPDATE tickets SET title = ?", "renamed").Error; err != nil {
			t.Fatal(err)
		}
		for i, status := range []string{"in_progress", "resolved", "closed", "open"} {
			if a := s.setStatus(t, first.ID, fmt.Sprint("set", i), fmt.Sprintf(`{"status":%q,"expected_version":%d}`, status, i+1)); a.Status != 200 {
				t.Errorf("%s: %s", status, a)
			}
			got := ticketOf(t, create(t, s.agent(), key("status%d", i), report("t", "d", "high", `{"a":"1"}`)))
			if got.ID != first.ID || got.Disposition != "existing" || got.Status != status || got.Title != "renamed" || *got.ContentMatches {
				t.Errorf("%s: %+v", status, got)
			}
		}
		if n := s.count(t, "tickets"); n != 1 {
			t.Errorf("%d tickets", n)
		}
		s.healthy(t)
	})
}

// RB-061, RB-033.
func TestWhatIsAnotherEvent(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)
		made := map[string]string{}
		mine := func(what string, client servertest.Client, body string) {
			t.Helper()
			a := create(t, client, key("k%d", len(made)), body)
			got := ticketOf(t, a)
			for other, id := range made {
				if id == got.ID {
					t.Errorf("%s got the ticket of %s", what, other)
				}
			}
			if a.Status != 201 || got.Disposition != "created" {
				t.Errorf("%s: %s", what, a)
			}
			made[what] = got.ID
		}
		mine("an event", s.agent(), `{"project":"ops","title":"t","source_event_id":"e"}`)
		mine("the event in another project", s.agent(), `{"project":"dev","title":"t","source_event_id":"e"}`)
		mine("the event of another account", s.globex(), `{"project":"ops","title":"t","source_event_id":"e"}`)
		mine("an event in another case", s.agent(), `{"project":"ops","title":"t","source_event_id":"E"}`)
		mine("an event with white space in it", s.agent(), `{"project":"ops","title":"t","source_event_id":"e e"}`)
		mine("an event in another normal form", s.agent(), `{"project":"ops","title":"t","source_event_id":"\u00e9"}`)
		mine("that form decomposed", s.agent(), `{"project":"ops","title":"t","source_event_id":"e\u0301"}`)
		for i := range 3 { // never by title
			mine(fmt.Sprint("no event ", i), s.agent(), `{"project":"ops","title":"t"}`)
		}

		t.Run("is found in its own project", func(t *testing.T) {
			for project, want := range map[string]string{"ops": made["an event"], "dev": made["the event in another project"]} {
				a := create(t, s.agent(), key("again-%s", project), `{"project":"`+project+`","title":"t","source_event_id":"e"}`)
				if got := ticketOf(t, a); a.Status != 200 || got.ID != want {
					t.Errorf("%s: %s, want %s", project, a, want)
				}
			}
		})

		t.Run("is none where it is empty", func(t *testing.T) {
			for _, id := range []string{`""`, `" "`, `"\t"`, `null`} {
				expect(t, id, create(t, s.agent(), key("empty"), with("source_event_id", id)), 422, problem.ValidationFailed)
			}
		})

		if n := s.count(t, "tickets"); n != int64(len(made)) {
			t.Errorf("%d tickets, %d were made", n, len(made))
		}
		s.healthy(t)
	})
}

// RB-009: the rule about events outlives what is kept about keys.
func TestAnEventOutlivesItsKey(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		clock := func() time.Time { return now }
		s := startOn(t, dbtest.OpenWith(t, kind, database.Options{Clock: clock}), func(c *tickets.Config) { c.ResponseRetention = time.Hour })
		const body = `{"project":"ops","title":"t","source_event_id":"e"}`
		first := create(t, s.agent(), key("k"), body)

		now = now.Add(2 * time.Hour)
		p := expect(t, "the old key", create(t, s.agent(), key("k"), body), 410, problem.IdempotencyKeyExpired)
		if p.OperationID != first.Header.Get("Operation-Id") || p.OperationState != "succeeded" || p.Effect != problem.EffectApplied {
			t.Errorf("%+v", p)
		}
		if got := ticketOf(t, create(t, s.agent(), key("another"), body)); got.Disposition != "existing" || got.ID != ticketOf(t, first).ID {
			t.Errorf("another key: %+v", got)
		}
		if n := s.count(t, "tickets"); n != 1 {
			t.Errorf("%d tickets", n)
		}
		s.healthy(t)
	})
}
