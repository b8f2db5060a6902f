package server_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/einmal/einmal/pkg/problem"
)

// net/http refuses these by itself, before any handler is asked.
func TestUnreadableRequestsAreAnsweredWithProblems(t *testing.T) {
	s := start(t, func(e *echo.Echo) {
		e.POST("/v1/things", func(c echo.Context) error { return c.String(http.StatusBadRequest, "said by a handler") })
	})

	send := func(t *testing.T, request string) (int, problem.Problem) {
		t.Helper()
		conn, err := net.Dial("tcp", s.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, request); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		var p problem.Problem
		if err := json.Unmarshal(body, &p); err != nil || answer.Header.Get("Content-Type") != problem.ContentType || p.Status != answer.StatusCode {
			t.Errorf("%s %v %s", answer.Status, answer.Header, body)
		}
		return answer.StatusCode, p
	}
	const head = "POST /v1/things HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer demo-agent\r\nContent-Length: 0\r\nConnection: close\r\n"

	for name, c := range map[string]struct {
		request string
		status  int
		code    problem.Code
		says    string
	}{
		"a control character in the key": {head + "Idempotency-Key: secret\x01\r\n\r\n", 400, problem.MalformedRequest, "Idempotency-Key"},
		"NUL in the key":                 {head + "Idempotency-Key: secret\x00\r\n\r\n", 400, problem.MalformedRequest, "Idempotency-Key"},
		"a line feed in the key":         {head + "Idempotency-Key: secret\nmore\r\n\r\n", 400, problem.MalformedRequest, "Idempotency-Key"},
		"no Host":                        {"POST /v1/things HTTP/1.1\r\n\r\n", 400, problem.MalformedRequest, "Host"},
		"no HTTP":                        {"hello\r\n\r\n", 400, problem.MalformedRequest, "HTTP/1.1"},
		"an unknown Transfer-Encoding":   {head + "Transfer-Encoding: secret\r\n\r\n", 501, problem.MalformedRequest, "HTTP/1.1"},
		"a later HTTP":                   {"POST /v1/things HTTP/7.0\r\nHost: x\r\n\r\n", 505, problem.MalformedRequest, "HTTP/1.1"},
		"headers without end":            {head + "Idempotency-Key: " + strings.Repeat("a", 70<<10) + "\r\n\r\n", 431, problem.HeadersTooLarge, "64 KiB"},
	} {
		t.Run(name, func(t *testing.T) {
			status, p := send(t, c.request)
			if status != c.status || p.Code != c.code || !strings.Contains(p.Detail, c.says) || p.Effect != problem.EffectNone {
				t.Errorf("%d %+v", status, p)
			}
			if strings.Contains(p.Detail, "secret") {
				t.Errorf("the answer repeats what was sent: %s", p.Detail)
			}
		})
	}

	t.Run("what a handler says stays as it is", func(t *testing.T) {
		if got := s.send(t, http.MethodPost, "/v1/things", "Authorization: Bearer demo-agent"); got.body != "said by a handler" {
			t.Errorf("%+v", got)
		}
	})
}
