package tickets_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/problem"
	"github.com/einmal/einmal/pkg/server/servertest"
)

// comment is the resource as a client reads it.
type comment struct {
	ID        string `json:"id"`
	TicketID  string `json:"ticket_id"`
	Author    string `json:"author"`
	Body      string `json:"body"`
	CreatedAt string `json:"created_at"`
}

// comment sends a comment as acme's agent.
func (r running) comment(t *testing.T, ticketID, k, text string) servertest.Answer {
	t.Helper()
	return addComment(t, r.agent(), ticketID, k, text)
}

func addComment(t *testing.T, client servertest.Client, ticketID, k, text string) servertest.Answer {
	t.Helper()
	body, err := json.Marshal(map[string]string{"body": text})
	if err != nil {
		t.Error(err)
	}
	return client.Send(t, "POST", "/v1/tickets/"+ticketID+"/comments", string(body), key("%s", k))
}

func commentOf(t *testing.T, a servertest.Answer) (c comment) {
	t.Helper()
	a.Decode(t, &c)
	return c
}

// comments reads a list of comments as acme's agent.
func (r running) comments(t *testing.T, ticketID, query string) (items []comment, next string) {
	t.Helper()
	var page struct {
		Items      []comment
		NextCursor string `json:"next_cursor"`
	}
	r.agent().Send(t, "GET", "/v1/tickets/"+ticketID+"/comments"+query, "").Decode(t, &page)
	return page.Items, page.NextCursor
}

func TestAComment(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)

		t.Run("is kept as it was said, and counted", func(t *testing.T) {
			was := s.newTicket(t, "k", "open")
			for i, text := range []string{" ", "<script>\u2028&", "line\n\ttab\u0007 \U0001F600", strings.Repeat("é", 25_000)} {
				a := addComment(t, s.As("demo-operator"), was.ID, fmt.Sprint("c", i), text)
				got := commentOf(t, a)
				want := comment{got.ID, was.ID, "demo-operator", text, got.CreatedAt}
				if diff := cmp.Diff(want, got); a.Status != 201 || a.Outcome() != "executed" || !strings.HasPrefix(got.ID, "cmt_") || diff != "" {
					t.Errorf("%s (-want +got)\n%.500s", a, diff)
				}
				if diff := cmp.Diff(want, commentOf(t, s.agent().Send(t, "GET", a.Header.Get("Location"), ""))); diff != "" {
					t.Errorf("read back (-want +got)\n%.500s", diff)
				}
				now := s.now(t, was.ID)
				if now.UpdatedAt != got.CreatedAt {
					t.Errorf("the ticket was updated at %s, commented at %s", now.UpdatedAt, got.CreatedAt)
				}
				was.CommentCount++
				was.UpdatedAt = now.UpdatedAt
				if diff := cmp.Diff(was, now); diff != "" {
					t.Errorf("the ticket (-want +got)\n%s", diff)
				}
			}
		})

		// RB-059
		t.Run("is there once, however often it is sent", func(t *testing.T) {
			id := s.newTicket(t, "once", "open").ID
			first := s.comment(t, id, "retried", "Cleaning.")
			for range 3 {
				replays(t, first, func() servertest.Answer { return s.comment(t, id, "retried", "Cleaning.") })
			}
			expect(t, "another text under its key", s.comment(t, id, "retried", "Clean."), 422, problem.IdempotencyKeyReused)
			expect(t, "another ticket under its key", s.comment(t, s.newTicket(t, "once2", "open").ID, "retried", "Cleaning."), 422, problem.IdempotencyKeyReused)
			if items, _ := s.comments(t, id, ""); len(items) != 1 || s.now(t, id).CommentCount != 1 {
				t.Errorf("%+v", items)
			}
			if a := s.comment(t, id, "said-again", "Cleaning."); a.Status != 201 || a.Outcome() != "executed" || s.now(t, id).CommentCount != 2 {
				t.Errorf("the same words under another key are another comment: %s", a)
			}
		})

		t.Run("is an operation of its own, about itself", func(t *testing.T) {
			a := s.comment(t, s.newTicket(t, "own", "open").ID, "own-comment", "t")
			var op struct {
				operation
				Resource struct{ Type, ID, Href string }
			}
			s.agent().Send(t, "GET", "/v1/operations/"+a.Header.Get("Operation-Id"), "").Decode(t, &op)
			got := commentOf(t, a)
			if op.Type != "ticket.comment" || op.State != "succeeded" || op.Resource.Type != "comment" || op.Resource.ID != got.ID || op.Resource.Href != a.Header.Get("Location") {
				t.Errorf("%+v", op)
			}
		})

		t.Run("is added to a ticket whatever its status", func(t *testing.T) {
			for _, status := range []string{"in_progress", "resolved", "closed"} {
				was := s.newTicket(t, "in-"+status, status)
				if a := s.comment(t, was.ID, "on-"+status, "t"); a.Status != 201 {
					t.Errorf("%s: %s", status, a)
				}
				if now := s.now(t, was.ID); now.Status != status || now.Version != was.Version || now.ClosedAt != was.ClosedAt || now.CommentCount != 1 {
					t.Errorf("%s: %+v", status, now)
				}
			}
		})

		t.Run("on a ticket that is not there uses no key up", func(t *testing.T) {
			theirs := ticketOf(t, create(t, s.globex(), key("theirs"), `{"project":"ops","title":"t"}`)).ID
			before := s.count(t, "operations")
			for _, id := range []string{"tkt_1", theirs, "'%20OR%201=1"} {
				p := expect(t, id, s.comment(t, id, "absent", "t"), 404, problem.NotFound)
				if p.Retry != problem.RetrySameKey || p.Effect != problem.EffectNone {
					t.Errorf("%+v", p)
				}
			}
			if n := s.count(t, "operations"); n != before {
				t.Errorf("%d operations were %d", n, before)
			}
			if a := s.comment(t, s.newTicket(t, "there", "open").ID, "absent", "t"); a.Outcome() != "executed" {
				t.Errorf("%s", a)
			}
			if n := ticketOf(t, s.globex().Send(t, "GET", "/v1/tickets/"+theirs, "")).CommentCount; n != 0 {
				t.Errorf("another account's ticket has %d comments", n)
			}
		})

		t.Run("of another account does not exist", func(t *testing.T) {
			a := s.comment(t, s.newTicket(t, "ours", "open").ID, "ours-comment", "t")
			place := a.Header.Get("Location")
			list := strings.TrimSuffix(place, "/"+commentOf(t, a).ID)
			for _, path := range []string{place, list, list + "/cmt_1", "/v1/tickets/tkt_1/comments"} {
				expect(t, path, s.globex().Send(t, "GET", path, ""), 404, problem.NotFound)
			}
			other := s.newTicket(t, "others", "open").ID
			expect(t, "at another ticket", s.agent().Send(t, "GET", "/v1/tickets/"+other+"/comments/"+commentOf(t, a).ID, ""), 404, problem.NotFound)
		})

		s.healthy(t)
	})
}

// Comments of many at once: each is there, and the count is right.
func TestCommentsAtOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)
		id := s.newTicket(t, "k", "open").ID
		const callers, attempts = 12, 3
		var all sync.WaitGroup
		for i := range callers {
			for range attempts {
				all.Go(func() {
					if a := insist(func() servertest.Answer { return s.comment(t, id, fmt.Sprint("c", i), fmt.Sprint(i)) }); a.Status != 201 {
						t.Errorf("%s", a)
					}
				})
			}
		}
		all.Wait()
		if items, _ := s.comments(t, id, ""); len(items) != callers || s.now(t, id).CommentCount != callers {
			t.Errorf("%d comments, counted %d", len(items), s.now(t, id).CommentCount)
		}
		s.healthy(t)
	})
}

func TestAListOfComments(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)
		id, other := s.newTicket(t, "k", "open").ID, s.newTicket(t, "l", "open").ID
		var all []comment
		for i := range 5 {
			all = append([]comment{commentOf(t, s.comment(t, id, fmt.Sprint("c", i), fmt.Sprint(i)))}, all...)
			s.comment(t, other, fmt.Sprint("o", i), "of another ticket")
		}

		t.Run("has them, newest first", func(t *testing.T) {
			items, next := s.comments(t, id, "")
			if diff := cmp.Diff(all, items); diff != "" || next != "" {
				t.Errorf("%s (-want +got)\n%s", next, diff)
			}
			if a := s.agent().Send(t, "GET", "/v1/tickets/"+s.newTicket(t, "empty", "open").ID+"/comments", ""); string(a.Body) != `{"items":[]}` {
				t.Errorf("%s", a)
			}
		})
		t.Run("is read page by page, undisturbed by what is new", func(t *testing.T) {
			var seen []comment
			for query, i := "?limit=2", 0; ; i++ {
				items, next := s.comments(t, id, query)
				seen = append(seen, items...)
				s.comment(t, id, fmt.Sprint("new", i), "new")
				if next == "" {
					break
				}
				query = "?limit=2&cursor=" + url.QueryEscape(next)
			}
			if diff := cmp.Diff(all, seen); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
		t.Run("goes on only from a cursor of its own: those of other lists name no place in it", func(t *testing.T) {
			_, next := s.comments(t, id, "?limit=2")
			other := s.newTicket(t, "another", "open").ID
			for _, list := range []string{"/v1/tickets/" + other + "/comments", "/v1/tickets", "/v1/operations", "/v1/reviews"} {
				p := expect(t, list, s.agent().Send(t, "GET", list+"?cursor="+url.QueryEscape(next), ""), 422, problem.ValidationFailed)
				if len(p.Errors) != 1 || p.Errors[0].Pointer != "?cursor" {
					t.Errorf("%s: %+v", list, p.Errors)
				}
			}
		})
		t.Run("is refused where the question makes no sense", func(t *testing.T) {
			for _, query := range []string{"?limit=0", "?cursor=%21", "?author=x", "?limit=1&limit=2"} {
				expect(t, query, s.agent().Send(t, "GET", "/v1/tickets/"+id+"/comments"+query, ""), 422, problem.ValidationFailed)
			}
		})
	})
}

func TestWhatIsNoComment(t *testing.T) {
	s := start(t, database.SQLite) // none of this gets as far as a database
	id := s.newTicket(t, "k", "open").ID
	for body, pointer := range map[string]string{
		`{}`:                               "/body",
		`{"body":""}`:                      "/body",
		`{"body":null}`:                    "/body",
		`{"body":["t"]}`:                   "/body",
		`{"text":"t"}`:                     "/body",
		`{"Body":"t"}`:                     "/Body",
		`{"body":"t","author":"somebody"}`: "/author",
		`{"body":"` + strings.Repeat("a", 50_001) + `"}`: "/body",
		`{"body":"` + strings.Repeat("é", 25_001) + `"}`: "/body",
	} {
		p := expect(t, body[:min(40, len(body))], s.agent().Send(t, "POST", "/v1/tickets/"+id+"/comments", body, key("no")), 422, problem.ValidationFailed)
		if len(p.Errors) == 0 || p.Errors[len(p.Errors)-1].Pointer != pointer {
			t.Errorf("%.40s: %+v; want %s", body, p.Errors, pointer)
		}
	}
	if a := s.comment(t, id, "no", "at last"); a.Outcome() != "executed" {
		t.Errorf("the key was used up: %s", a)
	}
	s.healthy(t)
}
