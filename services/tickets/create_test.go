package tickets_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/problem"
)

func TestATicket(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)

		t.Run("has what was said of it", func(t *testing.T) {
			a := create(t, s.agent(), key("all"), `{"project":"ops-1","title":" Disk <full>\u2028& \ud83d\ude00 ","description":"line\nline\ttab\u0007",
				"priority":"urgent","labels":{"cluster":"eu-1","a/b":"\u00e9"},"source_event_id":"alert 4711"}`)
			got := ticketOf(t, a)
			want := ticket{
				ID: got.ID, Project: "ops-1", Title: " Disk <full>\u2028& \U0001F600 ", Description: "line\nline\ttab\a", Priority: "urgent",
				Labels: map[string]string{"cluster": "eu-1", "a/b": "é"}, SourceEventID: "alert 4711", Status: "open", Version: 1,
				CreatedAt: got.CreatedAt, UpdatedAt: got.CreatedAt, Disposition: "created",
			}
			if diff := cmp.Diff(want, got); a.Status != 201 || diff != "" {
				t.Errorf("%s (-want +got)\n%s", a, diff)
			}
			if location := a.Header.Get("Location"); location != "/v1/tickets/"+got.ID || !strings.HasPrefix(got.ID, "tkt_") {
				t.Errorf("%s is at %s", got.ID, location)
			}
			want.Disposition = ""
			if diff := cmp.Diff(want, ticketOf(t, s.agent().Send(t, "GET", a.Header.Get("Location"), ""))); diff != "" {
				t.Errorf("read back (-want +got)\n%s", diff)
			}
		})

		t.Run("has defaults, and telling them is the same command", func(t *testing.T) {
			first := create(t, s.agent(), key("some"), `{"project":"ops","title":"t"}`)
			got := ticketOf(t, first)
			if got.Description != "" || got.Priority != "normal" || got.Labels == nil || len(got.Labels) != 0 || got.SourceEventID != "" || got.CommentCount != 0 {
				t.Errorf("%+v", got)
			}
			again := create(t, s.agent(), key("some"), `{"labels":{},"priority":"normal","description":"","title":"t","project":"ops"}`)
			if again.Outcome() != "replayed" || string(again.Body) != string(first.Body) {
				t.Errorf("%s", again)
			}
		})

		t.Run("has these members and no other", func(t *testing.T) {
			members := func(text []byte) []string {
				var object map[string]json.RawMessage
				if err := json.Unmarshal(text, &object); err != nil {
					t.Error(err)
				}
				return slices.Sorted(maps.Keys(object))
			}
			always := []string{"comment_count", "created_at", "description", "id", "labels", "priority", "project", "status", "title", "updated_at", "version"}
			made := create(t, s.agent(), key("members"), `{"project":"ops","title":"t"}`)
			if diff := cmp.Diff(slices.Sorted(slices.Values(append([]string{"disposition"}, always...))), members(made.Body)); diff != "" {
				t.Errorf("created: %s", diff)
			}
			if diff := cmp.Diff(always, members(s.agent().Send(t, "GET", made.Header.Get("Location"), "").Body)); diff != "" {
				t.Errorf("read: %s", diff)
			}
			create(t, s.agent(), key("event"), `{"project":"ops","title":"t","source_event_id":"e"}`)
			found := create(t, s.agent(), key("event2"), `{"project":"ops","title":"t","source_event_id":"e"}`)
			if diff := cmp.Diff(slices.Sorted(slices.Values(append([]string{"disposition", "content_matches", "source_event_id"}, always...))), members(found.Body)); diff != "" {
				t.Errorf("existing: %s", diff)
			}
		})

		s.healthy(t)
	})
}

// with is a valid creation with one member in place of its own, as JSON.
func with(member, value string) string {
	members := map[string]json.RawMessage{"project": []byte(`"ops"`), "title": []byte(`"t"`)}
	members[member] = []byte(value)
	body, err := json.Marshal(members)
	if err != nil {
		panic(member + ": " + value)
	}
	return string(body)
}

func text(s string) string {
	quoted, _ := json.Marshal(s)
	return string(quoted)
}

func labels(n int, name, value func(i int) string) string {
	all := map[string]string{}
	for i := range n {
		all[name(i)] = value(i)
	}
	object, _ := json.Marshal(all)
	return string(object)
}

func number(i int) string { return fmt.Sprint("l", i) }

func long(n int) func(int) string {
	return func(int) string { return strings.Repeat("ü", n) } // not as texts are: a problem may name a label and tell no text
}

func TestTheLimitsOfATicket(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)

		t.Run("include these", func(t *testing.T) {
			for i, body := range []string{
				with("project", `"a"`), with("project", `"0"`), with("project", `"a-b-0"`), with("project", text(strings.Repeat("a", 63))),
				with("title", `" "`), with("title", text(strings.Repeat("é", 200))), with("title", text(strings.Repeat("\U0001F600", 200))),
				with("description", `""`), with("description", text(strings.Repeat("a", 500_000))), with("description", text(strings.Repeat("é", 250_000))),
				with("priority", `"low"`), with("priority", `"normal"`), with("priority", `"high"`), with("priority", `"urgent"`),
				with("labels", `{}`), with("labels", labels(32, number, number)), with("labels", labels(1, long(64), long(255))),
				with("source_event_id", text(strings.Repeat("é", 255))), with("source_event_id", `"a b"`), with("source_event_id", `"\u200ba"`),
			} {
				a := create(t, s.agent(), key("ok%d", i), body)
				if a.Status != 201 {
					t.Errorf("%.80s: %s", body, a)
					continue
				}
				// What was taken is what is read.
				made, read := ticketOf(t, a), ticketOf(t, s.agent().Send(t, "GET", a.Header.Get("Location"), ""))
				made.Disposition = ""
				if diff := cmp.Diff(made, read); diff != "" {
					t.Errorf("%.80s: read back\n%.500s", body, diff)
				}
			}
		})
		s.healthy(t)
	})
}

func TestWhatIsNoTicket(t *testing.T) {
	s := start(t, database.SQLite) // none of this gets as far as a database

	t.Run("is beyond a limit", func(t *testing.T) {
		for _, c := range []struct{ body, pointer string }{
			{`{"title":"t"}`, "/project"},
			{`{"project":"ops"}`, "/title"},
			{with("project", `""`), "/project"},
			{with("project", `"-a"`), "/project"},
			{with("project", `"a-"`), "/project"},
			{with("project", `"A"`), "/project"},
			{with("project", `"a_b"`), "/project"},
			{with("project", `"a\n"`), "/project"},
			{with("project", `"é"`), "/project"},
			{with("project", text(strings.Repeat("a", 64))), "/project"},
			{with("title", `""`), "/title"},
			{with("title", text(strings.Repeat("é", 201))), "/title"},
			{with("title", text(strings.Repeat("e\u0301", 101))), "/title"}, // code points, not what one sees
			{with("description", text(strings.Repeat("a", 500_001))), "/description"},
			{with("description", text(strings.Repeat("é", 250_001))), "/description"},
			{with("priority", `""`), "/priority"},
			{with("priority", `"Low"`), "/priority"},
			{with("priority", `"critical"`), "/priority"},
			{with("labels", labels(33, number, number)), "/labels"},
			{with("labels", `{"":"a"}`), "/labels/"},
			{with("labels", labels(1, long(65), number)), "/labels/" + long(65)(0)},
			{with("labels", labels(1, number, long(256))), "/labels/l0"},
			{with("labels", `{"a/b":1}`), "/labels/a~1b"},
			{with("labels", `{"a~b":null}`), "/labels/a~0b"},
			{with("labels", `["a"]`), "/labels"},
			{with("source_event_id", `""`), "/source_event_id"},
			{with("source_event_id", `" "`), "/source_event_id"},
			{with("source_event_id", `" a"`), "/source_event_id"},
			{with("source_event_id", `"a\n"`), "/source_event_id"},
			{with("source_event_id", `"\u00a0a"`), "/source_event_id"},
			{with("source_event_id", `"a\u2003"`), "/source_event_id"},
			{with("source_event_id", `null`), "/source_event_id"},
			{with("source_event_id", `4711`), "/source_event_id"},
			{with("source_event_id", text(strings.Repeat("é", 256))), "/source_event_id"},
			{with("status", `"open"`), "/status"},
			{with("id", `"tkt_1"`), "/id"},
			{with("Title", `"t"`), "/Title"},
		} {
			p := expect(t, c.body[:min(80, len(c.body))], create(t, s.agent(), key("no"), c.body), 422, problem.ValidationFailed)
			if len(p.Errors) != 1 || p.Errors[0].Pointer != c.pointer {
				t.Errorf("%.80s: %+v; want %s", c.body, p.Errors, c.pointer)
			}
		}
	})

	t.Run("is told all at once", func(t *testing.T) {
		p := expect(t, "all", create(t, s.agent(), key("no"), `{"Project":"ops","title":"","priority":1,"labels":{"b":null,"":"x"},"source_event_id":" ","x":1}`), 422, problem.ValidationFailed)
		var got []string
		for _, v := range p.Errors {
			got = append(got, v.Pointer)
		}
		want := []string{"/labels/b", "/Project", "/priority", "/x", "/labels/", "/source_event_id", "/title"} // and not that project is missing
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})

	t.Run("uses no key up", func(t *testing.T) {
		if a := create(t, s.agent(), key("no"), with("title", `"at last"`)); a.Outcome() != "executed" {
			t.Errorf("%s", a)
		}
	})
	s.healthy(t)
}

// RB-025: one time has one text, wherever it is read.
func TestTimesAreTheSameEverywhere(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)
		const body = `{"project":"ops","title":"t"}`
		first := create(t, s.agent(), key("k"), body)
		made := ticketOf(t, first)
		read := ticketOf(t, s.agent().Send(t, "GET", first.Header.Get("Location"), ""))
		listed := s.list(t, "").Items[0]
		replay := create(t, s.agent(), key("k"), body)
		replayed := ticketOf(t, replay)
		var op struct {
			CreatedAt string `json:"created_at"`
			UpdatedAt string `json:"updated_at"`
		}
		s.agent().Send(t, "GET", "/v1/operations", "", key("k")).Decode(t, &op)

		for where, at := range map[string]string{
			"created, updated": made.UpdatedAt, "read": read.CreatedAt, "read, updated": read.UpdatedAt, "listed": listed.CreatedAt, "replayed": replayed.CreatedAt,
			"the operation": op.CreatedAt, "the operation, updated": op.UpdatedAt, "Idempotency-Executed-At": replay.Header.Get("Idempotency-Executed-At"),
		} {
			if at != made.CreatedAt {
				t.Errorf("%s: %s, created: %s", where, at, made.CreatedAt)
			}
		}
		if string(replay.Body) != string(first.Body) {
			t.Errorf("replayed %s, first %s", replay, first)
		}
	})
}
