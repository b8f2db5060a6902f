package problem_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/problem"
)

func TestWrite(t *testing.T) {
	t.Run("answers with the status, the media type and the time to wait", func(t *testing.T) {
		w := httptest.NewRecorder()
		problem.New(problem.StoreUnavailable, "no connection").Write(w)
		got := []string{fmt.Sprint(w.Code), w.Header().Get("Content-Type"), w.Header().Get("Retry-After"), w.Header().Get("Cache-Control")}
		if diff := cmp.Diff([]string{"503", "application/problem+json", "1", "no-store"}, got); diff != "" {
			t.Error(diff)
		}
		if got := w.Header().Get("Content-Length"); got != fmt.Sprint(w.Body.Len()) {
			t.Errorf("Content-Length %s of a body of %d bytes", got, w.Body.Len())
		}
	})

	t.Run("names no time to wait where waiting does not help", func(t *testing.T) {
		w := httptest.NewRecorder()
		problem.New(problem.NotFound, "").Write(w)
		if _, ok := w.Header()["Retry-After"]; ok || strings.Contains(w.Body.String(), "retry_after") {
			t.Errorf("header %q, body %s", w.Header().Get("Retry-After"), w.Body)
		}
	})

	t.Run("keeps the headers that were set before", func(t *testing.T) {
		w := httptest.NewRecorder()
		w.Header().Set("Idempotency-Outcome", "conflict")
		problem.New(problem.IdempotencyKeyReused, "").Write(w)
		if w.Header().Get("Idempotency-Outcome") != "conflict" {
			t.Error("Idempotency-Outcome is gone")
		}
	})
}

func TestJSON(t *testing.T) {
	t.Run("survives a detail that is not UTF-8 or looks like HTML", func(t *testing.T) {
		p := problem.New(problem.NotFound, "no ticket \"\xff<b>\u2028\x00")
		var back problem.Problem
		if err := json.Unmarshal(p.JSON(), &back); err != nil {
			t.Fatal(err)
		}
		if want := "no ticket \"\ufffd<b>\u2028\x00"; back.Detail != want {
			t.Errorf("detail %q, want %q", back.Detail, want)
		}
	})

	t.Run("reads back as the same problem", func(t *testing.T) {
		p := problem.Invalid(problem.Violation{Pointer: "/title", Detail: "is missing"}, problem.Violation{Pointer: "/labels/a~1b", Detail: "is not text"})
		p.Instance, p.OperationID, p.OperationState = "/v1/operations/op_1", "op_1", "queued"
		p.RetryAfterSeconds = 7
		var back problem.Problem
		if err := json.Unmarshal(p.JSON(), &back); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(*p, back); diff != "" {
			t.Error(diff)
		}
	})
}

func TestNew(t *testing.T) {
	t.Run("makes an unknown code an internal error and keeps its detail back", func(t *testing.T) {
		p := problem.New("no-such-code", "secret")
		if p.Code != problem.InternalError || p.Status != 500 || p.Detail != "" {
			t.Errorf("%+v", p)
		}
	})

	t.Run("is found through wrapping", func(t *testing.T) {
		err := fmt.Errorf("create ticket: %w", problem.New(problem.NotFound, "no project"))
		var p *problem.Problem
		if !errors.As(err, &p) || p.Error() != "not-found: no project" {
			t.Errorf("%v", p)
		}
	})
}

func TestPage(t *testing.T) {
	for _, e := range problem.All() {
		html, ok := problem.Page(e.Code)
		if !ok {
			t.Errorf("%s has no page", e.Code)
			continue
		}
		text := string(html)
		for _, want := range []string{string(e.Code), e.Title, string(e.Retry), string(e.NextAction), "prefers-color-scheme: dark"} {
			if !strings.Contains(text, want) {
				t.Errorf("the page of %s does not say %q", e.Code, want)
			}
		}
		for _, outside := range []string{"http://", "https://", "src=", "<script", "@import", "url("} {
			if strings.Contains(text, outside) {
				t.Errorf("the page of %s loads something: %q", e.Code, outside)
			}
		}
	}
	if html, ok := problem.Page("no-such-code"); ok || html != nil {
		t.Error("an unknown code has a page")
	}
}
