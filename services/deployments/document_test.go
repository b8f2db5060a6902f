package deployments_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/problem"
)

// openAPI is what is read of /openapi.json.
type openAPI struct {
	Paths map[string]map[string]struct {
		OperationID string
		Parameters  []ref
		RequestBody struct {
			Content map[string]struct{ Example json.RawMessage }
		}
		Responses map[string]ref
	}
	Components struct {
		Parameters map[string]json.RawMessage
		Responses  map[string]struct {
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
	}
}

type ref struct {
	Ref string `json:"$ref"`
}

func (r running) openAPI(t *testing.T) (d openAPI) {
	t.Helper()
	r.As("").Send(t, "GET", "/openapi.json", "").Decode(t, &d)
	return d
}

func TestTheDocumentIsTrue(t *testing.T) {
	s := start(t, database.SQLite)
	d := s.openAPI(t)

	t.Run("about the routes that there are", func(t *testing.T) {
		for path, methods := range d.Paths {
			var want []string
			for method := range methods {
				want = append(want, strings.ToUpper(method))
			}
			if slices.Contains(want, "GET") {
				want = append(want, "HEAD")
			}
			want = append(want, "OPTIONS")
			slices.Sort(want)
			a := s.agent().Send(t, "OPTIONS", strings.NewReplacer("{id}", "1", "{name}", "a", "{code}", "1").Replace(path), "")
			got := strings.Split(a.Header.Get("Allow"), ", ")
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
				for status, response := range operation.Responses {
					component := d.Components.Responses[strings.TrimPrefix(response.Ref, "#/components/responses/")]
					codes := component.Content[problem.ContentType].Schema.Properties.Code
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
		if told < 40 {
			t.Errorf("it tells of %d problems", told)
		}
	})

	t.Run("in its examples, which name no key that somebody would send as it is", func(t *testing.T) {
		for path, methods := range d.Paths {
			for method, operation := range methods {
				for _, content := range operation.RequestBody.Content {
					concrete := strings.NewReplacer("{id}", "1", "{name}", "a").Replace(path)
					a := s.As("demo-operator").Send(t, strings.ToUpper(method), concrete, string(content.Example), key("example-%s", operation.OperationID))
					if a.Status >= 300 && (concrete == path || a.Status != 404) { // nothing is wrong with it but that there is no 1
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

func TestTheDocumentAsAPage(t *testing.T) {
	s := start(t, database.SQLite)
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

// Every write of the service is in its policy.
func TestThePolicy(t *testing.T) {
	s := start(t, database.SQLite)
	var got struct {
		Operations map[string]struct{ Owner, Target, Approval string }
	}
	s.As("").Send(t, "GET", "/.well-known/idempotency-policy", "").Decode(t, &got)
	for operation, target := range map[string]string{
		"deployment.create": "cluster", "deployment.cancel": "cluster", "deployment.rollback": "cluster", "environment.put": "none",
	} {
		if e := got.Operations[operation]; e.Owner != "deployments" || e.Target != target || e.Approval != "never" {
			t.Errorf("%s: %+v", operation, e)
		}
	}
}
