package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/labstack/echo/v4"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/problem"
)

// failing answers with whatever error the test sets.
type failing struct{ err error }

func (f *failing) routes(e *echo.Echo) {
	e.POST("/v1/tickets", func(c echo.Context) error {
		// What a handler may have prepared when it fails.
		h := c.Response().Header()
		h.Set("Location", "/v1/tickets/tkt_1")
		h.Set("Operation-Id", "op_1")
		h.Set("Idempotency-Outcome", "executed")
		return f.err
	}, mayWrite)
	e.GET("/v1/tickets", func(echo.Context) error { return f.err }, mayRead)
}

func TestErrorsBecomeProblems(t *testing.T) {
	f := &failing{}
	s := start(t, f.routes)
	lost := errors.New("connection reset by postgres://einmal@db:5432")

	type said struct {
		Status     int
		Code       problem.Code
		Effect     problem.Effect
		Retry      problem.Retry
		RetryAfter string
	}
	for what, c := range map[string]struct {
		err   error
		write said
		read  said
	}{
		"a database that is away": {
			fmt.Errorf("claim: %w: %w", database.ErrUnavailable, lost),
			said{503, "store-unavailable", "none", "same_key", "1"},
			said{503, "store-unavailable", "none", "same_key", "1"},
		},
		"a busy database": {
			fmt.Errorf("claim: %w: %w", database.ErrBusy, context.DeadlineExceeded),
			said{503, "store-unavailable", "none", "same_key", "1"},
			said{503, "store-unavailable", "none", "same_key", "1"},
		},
		"a transaction that lost every race": {
			fmt.Errorf("claim: %w", database.ErrSerialization),
			said{503, "store-unavailable", "none", "same_key", "1"},
			said{503, "store-unavailable", "none", "same_key", "1"},
		},
		"a commit without an answer, whatever else is wrapped": {
			fmt.Errorf("claim: %w: %w: %w", database.ErrUnavailable, database.ErrCommitUnknown, context.DeadlineExceeded),
			said{503, "store-unavailable", "unknown", "same_key", "1"},
			said{503, "store-unavailable", "unknown", "same_key", "1"},
		},
		"a deadline that tells nothing": {
			fmt.Errorf("work: %w", context.DeadlineExceeded),
			said{503, "store-unavailable", "unknown", "same_key", "1"},
			said{503, "store-unavailable", "none", "same_key", "1"},
		},
		"a body beyond its limit": {
			fmt.Errorf("read body: %w", &http.MaxBytesError{Limit: 1 << 20}),
			said{413, "body-too-large", "none", "same_key", ""},
			said{413, "body-too-large", "none", "same_key", ""},
		},
		"what echo refuses by status": {
			echo.ErrUnsupportedMediaType,
			said{415, "unsupported-media-type", "none", "same_key", ""},
			said{415, "unsupported-media-type", "none", "same_key", ""},
		},
		"what echo refuses in a way we do not know": {
			echo.NewHTTPError(418, lost.Error()),
			said{500, "internal-error", "unknown", "same_key", ""},
			said{500, "internal-error", "none", "same_key", ""},
		},
		"what nobody foresaw": {
			fmt.Errorf("render: %w", lost),
			said{500, "internal-error", "unknown", "same_key", ""},
			said{500, "internal-error", "none", "same_key", ""},
		},
		"a cancellation that was not the caller's": {
			context.Canceled,
			said{500, "internal-error", "unknown", "same_key", ""},
			said{500, "internal-error", "none", "same_key", ""},
		},
	} {
		t.Run(what, func(t *testing.T) {
			f.err = c.err
			for method, want := range map[string]said{"POST": c.write, "GET": c.read} {
				id := strings.ReplaceAll(what, " ", "-") + method
				a := s.send(t, method, "/v1/tickets", asAgent, "X-Request-Id: "+id)
				p := a.problem(t)
				got := said{a.status, p.Code, p.Effect, p.Retry, a.header.Get("Retry-After")}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", method, diff)
				}
				if strings.Contains(a.body, "postgres") {
					t.Errorf("%s tells the caller what is inside: %s", method, a.body)
				}
				if p.Instance != "/v1/tickets" {
					t.Errorf("%s: instance %q", method, p.Instance)
				}
				for _, header := range []string{"Location", "Operation-Id", "Idempotency-Outcome"} {
					if a.header.Get(header) != "" {
						t.Errorf("%s: %s is left over from an answer that was never given", method, header)
					}
				}
				if line := s.log.request(t, id); line["error"] != c.err.Error() || line["code"] != string(want.Code) {
					t.Errorf("%s: the log says error %q, code %q", method, line["error"], line["code"])
				}
			}
		})
	}

	t.Run("a problem that the handler chose goes out as it is, with the headers it set", func(t *testing.T) {
		p := problem.New(problem.IdempotencyKeyReused, "Another body.")
		p.OperationID, p.OperationState = "op_1", "succeeded"
		f.err = fmt.Errorf("create ticket: %w", p)
		a := s.send(t, "POST", "/v1/tickets", asAgent)
		want := *p
		want.Instance = "/v1/operations/op_1"
		if diff := cmp.Diff(want, a.problem(t)); diff != "" {
			t.Error(diff)
		}
		if a.header.Get("Operation-Id") != "op_1" {
			t.Error("Operation-Id is gone")
		}
		if p.Instance != "" {
			t.Error("the handler's problem was changed")
		}
	})

	t.Run("a failure is logged with the operation it is about", func(t *testing.T) {
		f.err = problem.New(problem.EnvironmentLocked, "")
		s.send(t, "POST", "/v1/tickets", asAgent, "X-Request-Id: with-operation")
		if line := s.log.request(t, "with-operation"); line["operation_id"] != "op_1" || line["code"] != "environment-locked" {
			t.Errorf("%v", line)
		}
	})
}

func TestAnAnswerThatWasBegunIsNotMixedWithAnother(t *testing.T) {
	s := start(t, func(e *echo.Echo) {
		e.GET("/v1/error", func(c echo.Context) error {
			_ = c.String(200, "whole")
			return errors.New("afterwards")
		}, mayRead)
		e.GET("/v1/problem", func(c echo.Context) error {
			_ = c.String(201, "whole")
			return problem.New(problem.NotFound, "")
		}, mayRead)
		e.GET("/v1/panic", func(c echo.Context) error {
			_ = c.String(200, "half")
			panic("in the middle")
		}, mayRead)
	})

	t.Run("an error afterwards is only logged", func(t *testing.T) {
		if a := s.send(t, "GET", "/v1/error", asAgent, "X-Request-Id: after"); a.status != 200 || a.body != "whole" {
			t.Errorf("%d %q", a.status, a.body)
		}
		if line := s.log.request(t, "after"); line["error"] != "afterwards" || line["level"] != "WARN" {
			t.Errorf("%v", line)
		}
	})

	t.Run("a problem afterwards too", func(t *testing.T) {
		if a := s.send(t, "GET", "/v1/problem", asAgent); a.status != 201 || a.body != "whole" {
			t.Errorf("%d %q", a.status, a.body)
		}
	})

	t.Run("a panic in the middle cuts the connection, so that half an answer is not taken for one", func(t *testing.T) {
		if a, err := s.try(t.Context(), http.DefaultClient, "GET", "/v1/panic", asAgent, "X-Request-Id: middle"); err == nil {
			t.Errorf("got %d %q", a.status, a.body)
		}
		if line := s.log.request(t, "middle"); line["error"] != "panic: in the middle" || line["level"] != "ERROR" {
			t.Errorf("%v", line)
		}
	})
}

func TestACallerWhoHungUpIsNoFailure(t *testing.T) {
	entered, left := make(chan struct{}), make(chan struct{})
	s := start(t, func(e *echo.Echo) {
		e.POST("/v1/tickets", func(c echo.Context) error {
			close(entered)
			<-c.Request().Context().Done()
			defer close(left)
			return fmt.Errorf("wait for the first attempt: %w", c.Request().Context().Err())
		}, mayWrite)
	})
	ctx, hangUp := context.WithCancel(t.Context())
	go func() { <-entered; hangUp() }()
	if _, err := s.try(ctx, http.DefaultClient, "POST", "/v1/tickets", asAgent, "X-Request-Id: gone"); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	<-left
	if line := s.log.request(t, "gone"); line["status"] != 499.0 || line["level"] != "INFO" {
		t.Errorf("%v", line)
	}
}
