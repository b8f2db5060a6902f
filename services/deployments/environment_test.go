package deployments_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/problem"
)

func TestAnEnvironment(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)

		t.Run("that nobody has declared is not there, and a key is not used up by it", func(t *testing.T) {
			body := `{"service":"web","environment":"qa","artifact":"` + image("a") + `"}`
			expect(t, s.deploy(t, "k", body), 404, problem.NotFound)
			expect(t, s.agent().Send(t, "GET", "/v1/environments/qa", ""), 404, problem.NotFound)
			expect(t, s.agent().Send(t, "PUT", "/v1/environments/qa", `{"approval_required":false}`, key("put")), 403, problem.Forbidden)
			a := s.operator().Send(t, "PUT", "/v1/environments/qa", `{"approval_required":false}`, key("put"))
			var env environment
			a.Decode(t, &env)
			if a.Status != 201 || env.Name != "qa" || env.Version != 1 || a.Header.Get("Location") != "/v1/environments/qa" {
				t.Errorf("%s", a)
			}
			expect(t, s.globex().Send(t, "GET", "/v1/environments/qa", ""), 404, problem.NotFound)
			s.succeeds(t, "k", body)
		})

		t.Run("that is there keeps what has happened in it", func(t *testing.T) {
			a := s.operator().Send(t, "PUT", "/v1/environments/qa", `{"approval_required":true}`, key("again"))
			var env environment
			a.Decode(t, &env)
			if a.Status != 200 || !env.ApprovalRequired || env.Version != 2 || env.live() != image("a") {
				t.Errorf("%s", a)
			}
			if again := s.operator().Send(t, "PUT", "/v1/environments/qa", `{"approval_required":true}`, key("again")); again.Outcome() != "replayed" {
				t.Errorf("%s", again)
			}
		})

		t.Run("has a name of the rule, and says what it means", func(t *testing.T) {
			for _, path := range []string{"QA", "q_a", "-qa", "q%20a"} {
				expect(t, s.operator().Send(t, "PUT", "/v1/environments/"+path, `{"approval_required":true}`, key("bad")), 422, problem.ValidationFailed)
			}
			for _, body := range []string{`{}`, `{"approval_required":"yes"}`, `{"approval_required":null}`} {
				expect(t, s.operator().Send(t, "PUT", "/v1/environments/ok", body, key("bad")), 422, problem.ValidationFailed)
			}
		})

		t.Run("is listed, with those of the demo", func(t *testing.T) {
			var page struct {
				Items      []environment
				NextCursor string `json:"next_cursor"`
			}
			var names []string
			for cursor := ""; ; cursor = "&cursor=" + page.NextCursor {
				page.NextCursor = ""
				s.agent().Send(t, "GET", "/v1/environments?limit=2"+cursor, "").Decode(t, &page)
				for _, env := range page.Items {
					names = append(names, env.Name)
					if env.Name == "production" != env.ApprovalRequired && env.Name != "qa" {
						t.Errorf("%+v", env)
					}
				}
				if page.NextCursor == "" {
					break
				}
			}
			if len(names) != 4 || names[0] != "qa" {
				t.Errorf("%v", names)
			}
			expect(t, s.agent().Send(t, "GET", "/v1/environments?name=qa", ""), 422, problem.ValidationFailed)
		})
		s.healthy(t)
	})
}

func TestTheListOfDeployments(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)
		web := s.succeeds(t, "a", command("a", ""))
		api := s.succeeds(t, "b", `{"service":"api","environment":"staging","artifact":"`+image("b")+`"}`)
		expect(t, s.deploy(t, "c", `{"service":"failing","environment":"prod","artifact":"`+image("c")+`"}`, wait), 409, problem.RolloutFailed)
		for query, want := range map[string][]string{
			"?environment=prod&state=succeeded": {web.ID}, "?service=api": {api.ID}, "?state=succeeded": {api.ID, web.ID}, "?state=queued": nil, "?service=none": nil,
		} {
			var page struct{ Items []deployment }
			s.agent().Send(t, "GET", "/v1/deployments"+query, "").Decode(t, &page)
			var got []string
			for _, d := range page.Items {
				got = append(got, d.ID)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got)\n%s", query, diff)
			}
		}
		for _, query := range []string{"?state=done", "?env=prod", "?limit=0"} {
			expect(t, s.agent().Send(t, "GET", "/v1/deployments"+query, ""), 422, problem.ValidationFailed)
		}
		var none struct{ Items []deployment }
		s.globex().Send(t, "GET", "/v1/deployments", "").Decode(t, &none)
		if len(none.Items) != 0 {
			t.Errorf("globex sees %+v", none.Items)
		}
	})
}
