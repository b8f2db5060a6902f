package idemhttp_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/problem"
)

func TestAFinalRefusal(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)
		body := `{"name":"a","do":"refuse"}`
		first := s.post(t, key("k"), body)
		id := first.Header.Get("Operation-Id")

		t.Run("is a problem that names its operation", func(t *testing.T) {
			got := expect(t, "first", first, 409, problem.VersionMismatch)
			want := *problem.New(problem.VersionMismatch, "It is at version 7.")
			want.OperationID, want.OperationState, want.Instance = id, "failed", "/v1/operations/"+id
			if diff := cmp.Diff(want, got); diff != "" || id == "" {
				t.Errorf("operation %q (-want +got)\n%s", id, diff)
			}
			headers := map[string]string{"Content-Type": problem.ContentType, "Operation-Id": id, "Idempotency-Outcome": "refused"}
			if diff := cmp.Diff(headers, told(first)); diff != "" {
				t.Error(diff)
			}
		})

		t.Run("is replayed byte for byte", func(t *testing.T) {
			again := s.post(t, key("k"), body)
			executedAt := again.Header.Get("Idempotency-Executed-At")
			want := map[string]string{
				"Content-Type": problem.ContentType, "Operation-Id": id, "Idempotency-Outcome": "replayed", "Idempotent-Replayed": "true", "Idempotency-Executed-At": executedAt,
			}
			if diff := cmp.Diff(want, told(again)); diff != "" || again.Status != 409 || string(again.Body) != string(first.Body) || len(executedAt) != len("2026-01-01T00:00:00.000000Z") {
				t.Errorf("%s\n%s", again, diff)
			}
		})

		t.Run("leaves nothing of the work", func(t *testing.T) {
			if n := s.count(t, "things"); n != 0 {
				t.Errorf("%d things", n)
			}
		})

		t.Run("is the end of the operation", func(t *testing.T) {
			var op operation
			s.get(t, "/v1/operations/"+id).Decode(t, &op)
			if op.State != "failed" || op.Effect != "none" || op.NextAction != "new_operation" || op.Resource != nil {
				t.Errorf("%+v", op)
			}
			var response struct{ Body json.RawMessage }
			if err := json.Unmarshal(op.Response, &response); err != nil || string(response.Body) != string(first.Body) {
				t.Errorf("response %s, want the body %s", op.Response, first.Body)
			}
		})
	})
}

func TestARefusalForNow(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)
		for range 2 {
			a := s.post(t, key("k"), `{"name":"a","do":"later"}`)
			got := expect(t, "later", a, 409, problem.OrderBusy)
			want := map[string]string{"Content-Type": problem.ContentType, "Retry-After": "5", "Idempotency-Outcome": "refused"}
			if diff := cmp.Diff(want, told(a)); diff != "" {
				t.Error(diff)
			}
			if got.RetryAfterSeconds != 5 || got.Retry != problem.RetrySameKey || got.OperationID != "" {
				t.Errorf("%+v", got)
			}
		}
		s.keepsNothing(t)
		expect(t, "by key", s.get(t, "/v1/operations", key("k")), 404, problem.OperationNotFound)
		if a := s.post(t, key("k"), thing); a.Outcome() != "executed" {
			t.Errorf("the key was used up: %s", a)
		}
	})
}

func TestWorkThatGoesWrong(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)
		missing := s.post(t, key("k"), `{"name":"a","do":"missing"}`)
		expect(t, "its own problem", missing, 404, problem.NotFound)
		if headers := told(missing); len(headers) != 1 {
			t.Errorf("a problem of the work itself says %v", headers)
		}
		for _, do := range []string{"fail", "panic"} {
			a := s.post(t, key("k"), `{"name":"a","do":"`+do+`"}`)
			p := expect(t, do, a, http.StatusInternalServerError, problem.InternalError)
			if p.Effect != problem.EffectUnknown || p.Retry != problem.RetrySameKey || strings.Contains(string(a.Body), "hunter2") {
				t.Errorf("%s: %s", do, a)
			}
		}
		s.keepsNothing(t)
		if a := s.post(t, key("k"), thing); a.Outcome() != "executed" {
			t.Errorf("the key was used up: %s", a)
		}
	})
}
