package idemhttp_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/server/servertest"
)

// long is longer than any of these tests may take: who waits to its end has not been woken.
const long = 20 * time.Second

func TestPreferWait(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)
		queue := `{"name":"a","do":"queue"}`
		done := idempotency.Answer{State: idempotency.Succeeded, Status: 201, Location: "/v1/things/1", Body: []byte(`{"id":1}`)}
		accept := func(t *testing.T, name string) (id string) {
			t.Helper()
			return s.post(t, key(name), queue).Header.Get("Operation-Id")
		}
		applied := func(a servertest.Answer) string { return strings.Join(a.Header.Values("Preference-Applied"), " and ") }
		// during runs a request that waits, and then, while it does, what it waits for.
		during := func(t *testing.T, request func() servertest.Answer, then func()) servertest.Answer {
			t.Helper()
			var answer servertest.Answer
			var waiting sync.WaitGroup
			begun := time.Now()
			waiting.Go(func() { answer = request() })
			then()
			waiting.Wait()
			if took := time.Since(begun); took > long/2 {
				t.Errorf("answered after %s", took)
			}
			return answer
		}

		t.Run("answers a read as soon as the operation has its answer, by id and by key", func(t *testing.T) {
			for name, headers := range map[string][]string{"id": nil, "key": {key("key")}} {
				id := accept(t, name)
				path := "/v1/operations"
				if headers == nil {
					path += "/" + id
				}
				got := during(t, func() servertest.Answer { return s.get(t, path, append(headers, "Prefer: wait=20")...) }, func() {
					s.settle(t, id, idempotency.Queued, done)
				})
				var op operation
				got.Decode(t, &op)
				if got.Status != 200 || op.ID != id || op.State != "succeeded" || applied(got) != "wait=20" {
					t.Errorf("by %s: %s, applied %q", name, got, applied(got))
				}
			}
		})

		t.Run("answers the first attempt and its copies with the final answer", func(t *testing.T) {
			post := func() servertest.Answer { return s.post(t, key("write"), queue, "Prefer: wait=20") }
			got := during(t, post, func() {
				for deadline := time.Now().Add(10 * time.Second); s.get(t, "/v1/operations", key("write")).Status == http.StatusNotFound; time.Sleep(time.Millisecond) {
					if time.Now().After(deadline) {
						t.Fatal("waited in vain until it has claimed")
					}
				}
				op, err := s.exec.ByKey(t.Context(), "acme", idempotency.Key(servertest.Key("write")))
				if err != nil {
					t.Fatal(err)
				}
				s.settle(t, op.ID, idempotency.Queued, done)
			})
			if got.Status != 201 || got.Outcome() != "executed" || string(got.Body) != `{"id":1}` || got.Header.Get("Location") != "/v1/things/1" || applied(got) != "wait=20" {
				t.Errorf("first: %s", got)
			}
			id := accept(t, "copy")
			got = during(t, func() servertest.Answer { return s.post(t, key("copy"), queue, "Prefer: wait=20") }, func() {
				s.settle(t, id, idempotency.Queued, done)
			})
			if got.Status != 201 || got.Outcome() != "replayed" || string(got.Body) != `{"id":1}` {
				t.Errorf("copy: %s", got)
			}
		})

		t.Run("answers with the open operation when its time is over", func(t *testing.T) {
			id := accept(t, "open")
			begun := time.Now()
			got := s.get(t, "/v1/operations/"+id, "Prefer: wait=1")
			if took := time.Since(begun); took < time.Second || got.Status != 200 || !strings.Contains(string(got.Body), `"state":"queued"`) || applied(got) != "wait=1" {
				t.Errorf("after %s: %s", took, got)
			}
			if again := s.post(t, key("open"), queue, "Prefer: wait=1"); again.Status != 202 || again.Outcome() != "in_progress" || applied(again) != "wait=1" {
				t.Errorf("the write: %s", again)
			}
		})

		t.Run("is at most half a minute", func(t *testing.T) {
			id := accept(t, "most")
			s.settle(t, id, idempotency.Queued, done)
			for _, asked := range []string{"wait=31", "wait=86400", "wait=4294967295", "wait=99999999999999999999"} {
				if got := s.get(t, "/v1/operations/"+id, "Prefer: "+asked); applied(got) != "wait=30" {
					t.Errorf("%s: applied %q", asked, applied(got))
				}
			}
			for _, asked := range []string{`wait="7"`, "WAIT=7", "respond-async, wait=7", "respond-async; a=b, wait=7; c=d"} {
				if got := s.get(t, "/v1/operations/"+id, "Prefer: "+asked); applied(got) != "wait=7" {
					t.Errorf("%s: applied %q", asked, applied(got))
				}
			}
		})

		t.Run("that is absent, or no number, is answered at once", func(t *testing.T) {
			id := accept(t, "none")
			for _, headers := range [][]string{
				nil,
				{"Prefer: "},
				{"Prefer: wait"},
				{"Prefer: wait="},
				{"Prefer: wait=-1"},
				{"Prefer: wait=1.5"},
				{"Prefer: wait=soon"},
				{"Prefer: wait=0"},
				{"Prefer: respond-async"},
				{"Prefer: waits=20"},
				{"Prefer: return=minimal; wait=20"},
			} {
				begun := time.Now()
				got := s.get(t, "/v1/operations/"+id, headers...)
				if took := time.Since(begun); took > long/2 || got.Status != 200 || applied(got) != "" {
					t.Errorf("%q: %s after %s, applied %q", headers, got, took, applied(got))
				}
			}
		})

		t.Run("has nothing to wait for where work is done at once", func(t *testing.T) {
			if got := s.post(t, key("done"), thing, "Prefer: wait=20"); got.Status != 201 || got.Outcome() != "executed" || applied(got) != "" {
				t.Errorf("%s", got)
			}
		})
	})
}
