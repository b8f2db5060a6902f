package servertest

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/problem"
)

// openAPI is what is read of /openapi.json.
type openAPI struct {
	Paths map[string]map[string]struct {
		OperationID string
		RequestBody struct {
			Content map[string]struct{ Example json.RawMessage }
		}
		Responses map[string]response
	}
	Components struct {
		Parameters map[string]json.RawMessage
		Responses  map[string]response
	}
}

type response struct {
	Ref     string `json:"$ref"`
	Content map[string]struct {
		Schema struct {
			Properties struct {
				Code struct {
					Const string
					Enum  []string
				}
			}
		}
	}
}

func (s *Server) openAPI(t testing.TB) (d openAPI) {
	t.Helper()
	s.As("").Send(t, "GET", "/openapi.json", "").Decode(t, &d)
	return d
}

// CheckDocument holds what the service's document tells by itself, beside the exchanges, to what the service does. The client may do all
// that the document tells of, but for decisions of an approver. The parameters are those of its paths, each with what stands for it: "{id}", "1".
func (s *Server) CheckDocument(t *testing.T, client Client, parameters ...string) {
	d := s.openAPI(t)
	concrete := strings.NewReplacer(parameters...).Replace

	t.Run("about the routes that there are", func(t *testing.T) {
		for path, methods := range d.Paths {
			want := []string{"OPTIONS"}
			for method := range methods {
				want = append(want, strings.ToUpper(method))
			}
			if slices.Contains(want, "GET") {
				want = append(want, "HEAD")
			}
			slices.Sort(want)
			got := strings.Split(client.Send(t, "OPTIONS", concrete(path), "").Header.Get("Allow"), ", ")
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-document +service)\n%s", path, diff)
			}
		}
	})

	t.Run("about problems and their status", func(t *testing.T) {
		told := 0
		for path, methods := range d.Paths {
			for method, operation := range methods {
				for status, answer := range operation.Responses {
					if answer.Ref != "" {
						answer = d.Components.Responses[strings.TrimPrefix(answer.Ref, "#/components/responses/")]
					}
					codes := answer.Content[problem.ContentType].Schema.Properties.Code
					for _, code := range slices.DeleteFunc(append(codes.Enum, codes.Const), func(c string) bool { return c == "" }) {
						told++
						entry, known := problem.Lookup(problem.Code(code))
						if !known || strconv.Itoa(entry.Status) != status {
							t.Errorf("%s %s answers %s with %s, whose status is %d", method, path, code, status, entry.Status)
						}
					}
				}
			}
		}
		if told < 40 { // a service has more, and a walk that finds none would be content with all
			t.Errorf("it tells of %d problems", told)
		}
	})

	t.Run("in its examples, which name no key that somebody would send as it is", func(t *testing.T) {
		for path, methods := range d.Paths {
			for method, operation := range methods {
				for _, content := range operation.RequestBody.Content {
					if content.Example == nil && strings.HasPrefix(path, "/v1/hooks/") { // signed, so that nobody else could send it
						continue
					}
					sender := client
					if strings.HasPrefix(path, "/v1/approvals/") { // nobody else may, and an approver may write nothing else
						sender = s.As("demo-approver")
					}
					a := sender.Send(t, strings.ToUpper(method), concrete(path), string(content.Example), "Idempotency-Key: example-"+operation.OperationID)
					if a.Status >= 300 && (concrete(path) == path || a.Status != 404) { // nothing is wrong with it but that there is no 1
						t.Errorf("%s %s: the example is answered %s", method, path, a)
					}
				}
			}
		}
		for name, parameter := range d.Components.Parameters {
			if strings.Contains(string(parameter), `"example"`) {
				t.Errorf("the parameter %s has an example", name)
			}
		}
	})
}

// CheckPage holds the document's page to the document: it tells of every path, runs no script, and each of its links leads somewhere.
func (s *Server) CheckPage(t testing.TB) {
	t.Helper()
	a := s.As("").Send(t, "GET", "/docs", "")
	html := string(a.Body)
	if a.Status != 200 || !strings.HasPrefix(a.Header.Get("Content-Type"), "text/html") {
		t.Fatal(a)
	}
	if csp := a.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "script-src") {
		t.Errorf("Content-Security-Policy: %s", csp)
	}
	for path := range s.openAPI(t).Paths {
		if !strings.Contains(html, path+"</code>") {
			t.Errorf("%s is not on the page", path)
		}
	}
	links := regexp.MustCompile(`href="([^"]*)"`).FindAllStringSubmatch(html, -1)
	for _, link := range links {
		place, here := strings.CutPrefix(link[1], "#")
		switch {
		case here && !strings.Contains(html, `id="`+place+`"`):
			t.Errorf("#%s leads nowhere", place)
		case !here && s.As("").Send(t, "GET", link[1], "").Status != 200:
			t.Errorf("%s leads nowhere", link[1])
		}
	}
	if len(links) < 50 {
		t.Errorf("%d links", len(links))
	}
}

// CheckPolicy holds the policy of a service that has the settings' defaults to the members that docs/contract.md names, and to being
// about these operations. It returns what the policy says of each.
func (s *Server) CheckPolicy(t testing.TB, owner string, operations ...string) map[string]map[string]any {
	t.Helper()
	a := s.As("").Send(t, "GET", "/.well-known/idempotency-policy", "")
	var got map[string]any
	a.Decode(t, &got)
	delete(got, "operations")
	want := map[string]any{
		"key":                 map[string]any{"pattern": "^[!-~]{1,255}$", "scope": "service, account"},
		"retention":           map[string]any{"response_seconds": 2592000.0, "tombstone_seconds": 34560000.0},
		"wait_budget_seconds": 2.0,
		"fingerprint_version": "v1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	var policy struct{ Operations map[string]map[string]any }
	a.Decode(t, &policy)
	if diff := cmp.Diff(operations, slices.Sorted(maps.Keys(policy.Operations))); diff != "" {
		t.Errorf("operations (-want +got)\n%s", diff)
	}
	members := []string{
		"approval", "deadline_seconds", "downstream_key", "duplication_cost", "effects", "escalation", "longest_wait_seconds", "max_attempts",
		"owner", "priority", "proof", "retry_on", "risk", "target",
	}
	for operation, entry := range policy.Operations {
		of := []string{"max_cost", "review_due_seconds", "review_owner"} // of what costs something, and of what has an effect
		named := slices.DeleteFunc(slices.Sorted(maps.Keys(entry)), func(member string) bool { return slices.Contains(of, member) })
		if diff := cmp.Diff(members, named); diff != "" {
			t.Errorf("%s (-want +got)\n%s", operation, diff)
		}
		if entry["owner"] != owner && entry["owner"] != "every service" {
			t.Errorf("%s belongs to %v", operation, entry["owner"])
		}
	}
	return policy.Operations
}
