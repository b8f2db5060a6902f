package tickets_test

import (
	"fmt"
	"net/url"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/problem"
)

func TestATicketThatIsNotThere(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)
		id := ticketOf(t, create(t, s.agent(), key("k"), `{"project":"ops","title":"t","source_event_id":"e"}`)).ID

		t.Run("was never made", func(t *testing.T) {
			for _, id := range []string{"tkt_1", "x", "%2e%2e", "'%20OR%201=1", "%25", "TKT_" + id[4:], id + "%20"} {
				expect(t, id, s.agent().Send(t, "GET", "/v1/tickets/"+id, ""), 404, problem.NotFound)
			}
			for _, id := range []string{"%00", id + "%00", "%FF", "%ED%A0%80"} {
				expect(t, id, s.agent().Send(t, "GET", "/v1/tickets/"+id, ""), 404, problem.RouteNotFound)
			}
		})

		t.Run("is another account's", func(t *testing.T) {
			never, theirs := s.globex().Send(t, "GET", "/v1/tickets/tkt_1", "").Problem(t), s.globex().Send(t, "GET", "/v1/tickets/"+id, "").Problem(t)
			never.Instance, theirs.Instance = "", ""
			if diff := cmp.Diff(never, theirs); theirs.Code != problem.NotFound || diff != "" {
				t.Errorf("it shows that it exists elsewhere:\n%s", diff)
			}
			for _, query := range []string{"", "?source_event_id=e", "?project=ops"} {
				if a := s.globex().Send(t, "GET", "/v1/tickets"+query, ""); string(a.Body) != `{"items":[]}` {
					t.Errorf("%s: %s", query, a)
				}
			}
		})
	})
}

func TestAListOfTickets(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)
		var all []string
		for i, project := range []string{"ops", "dev", "ops", "dev", "ops"} {
			body := fmt.Sprintf(`{"project":%q,"title":"t","source_event_id":"e %d+%%&é"}`, project, i/2)
			all = append(all, ticketOf(t, create(t, s.agent(), key("k%d", i), body)).ID)
		}
		create(t, s.globex(), key("k0"), `{"project":"ops","title":"t","source_event_id":"e 0+%&é"}`)
		for i, status := range []string{"open", "in_progress", "resolved", "closed"} {
			if a := s.setStatus(t, all[i], fmt.Sprint("set", i), fmt.Sprintf(`{"status":%q}`, status)); a.Status != 200 {
				t.Fatal(a)
			}
		}
		pick := func(indexes ...int) (ids []string) {
			for _, i := range indexes {
				ids = append(ids, all[i])
			}
			return ids
		}
		event := func(i int) string { return url.QueryEscape(fmt.Sprintf("e %d+%%&é", i)) }

		t.Run("holds what is asked for, newest first", func(t *testing.T) {
			for query, want := range map[string][]string{
				"":                             pick(4, 3, 2, 1, 0),
				"?project=ops":                 pick(4, 2, 0),
				"?project=dev":                 pick(3, 1),
				"?project=none":                nil,
				"?status=open":                 pick(4, 0),
				"?status=in_progress":          pick(1),
				"?status=closed&project=ops":   nil,
				"?status=closed&project=dev":   pick(3),
				"?source_event_id=" + event(0): pick(1, 0),
				"?source_event_id=e":           nil,
				"?project=ops&source_event_id=" + event(0): pick(0),
				"?project=ops&limit=1":                     pick(4),
			} {
				if diff := cmp.Diff(want, s.list(t, query).ids()); diff != "" {
					t.Errorf("%s (-want +got)\n%s", query, diff)
				}
			}
		})

		t.Run("is read page by page, undisturbed by what is new", func(t *testing.T) {
			var seen []string
			query := "?limit=2&project=ops"
			for i := 0; ; i++ {
				p := s.list(t, query)
				seen = append(seen, p.ids()...)
				create(t, s.agent(), key("new%d", i), `{"project":"ops","title":"new"}`)
				if p.NextCursor == "" {
					break
				}
				query = "?limit=2&project=ops&cursor=" + url.QueryEscape(p.NextCursor)
			}
			if diff := cmp.Diff(pick(4, 2, 0), seen); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})

		t.Run("is refused where the question makes no sense, rather than answered with all", func(t *testing.T) {
			for query, want := range map[string][]string{
				"status=Open":                  {"?status"},
				"status=":                      {"?status"},
				"project=":                     {"?project"},
				"source_event_id=":             {"?source_event_id"},
				"source_event_id=%00":          {"?source_event_id"},
				"source_event_id=%FF":          {"?source_event_id"},
				"source_event_id=50%full":      {"?"},
				"project=a&project=b":          {"?project"},
				"source_event=e":               {"?source_event"},
				"Project=ops":                  {"?Project"},
				"limit=0&cursor=!&status=none": {"?cursor", "?limit", "?status"},
			} {
				p := expect(t, query, s.agent().Send(t, "GET", "/v1/tickets?"+query, ""), 422, problem.ValidationFailed)
				var got []string
				for _, v := range p.Errors {
					got = append(got, v.Pointer)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s (-want +got)\n%s", query, diff)
				}
			}
		})

		t.Run("names an id once", func(t *testing.T) {
			ids := s.list(t, "?limit=200").ids()
			if unique := slices.Compact(slices.Sorted(slices.Values(ids))); len(unique) != len(ids) {
				t.Errorf("%v", ids)
			}
		})
	})
}
