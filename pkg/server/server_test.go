package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"go.uber.org/goleak"

	"github.com/einmal/einmal/pkg/problem"
	"github.com/einmal/einmal/pkg/server"
)

func TestMain(m *testing.M) {
	code := m.Run()
	http.DefaultClient.CloseIdleConnections()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err) // a server that has left leaves nothing behind
		code = 1
	}
	os.Exit(code)
}

// running is a server that answers on a port of its own until the test ends.
type running struct {
	*server.Server
	url  string
	log  *log
	stop func() error // ends it and returns what Serve returned
}

// start runs a server with these routes. It fails the test if the server does not leave in peace at its end.
func start(t *testing.T, routes func(e *echo.Echo), changes ...func(*server.Config, *server.Service)) *running {
	t.Helper()
	log := &log{}
	config := server.Config{Listen: "127.0.0.1:0", ShutdownGrace: 5 * time.Second, LogLevel: slog.LevelDebug}
	service := server.Service{Name: "tickets", Log: config.Logger(log)}
	for _, change := range changes {
		change(&config, &service)
	}
	s, err := server.New(config, service)
	if err != nil {
		t.Fatal(err)
	}
	if routes != nil {
		routes(s.Echo())
	}
	if err := s.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx) }()
	stop := sync.OnceValue(func() error {
		cancel()
		return <-served
	})
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return &running{s, "http://" + s.Addr(), log, stop}
}

// answer is a response that was read to its end.
type answer struct {
	status int
	header http.Header
	body   string
}

// problem decodes the answer, which must be a problem document.
func (a answer) problem(t *testing.T) problem.Problem {
	t.Helper()
	var p problem.Problem
	if err := json.Unmarshal([]byte(a.body), &p); err != nil || a.header.Get("Content-Type") != problem.ContentType {
		t.Fatalf("no problem document but %d %s %q: %v", a.status, a.header.Get("Content-Type"), a.body, err)
	}
	if p.Status != a.status {
		t.Errorf("status %d with a problem of status %d", a.status, p.Status)
	}
	return p
}

// send makes one request. Headers are "Name: value".
func (r *running) send(t *testing.T, method, path string, headers ...string) answer {
	t.Helper()
	a, err := r.try(t.Context(), http.DefaultClient, method, path, headers...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (r *running) try(ctx context.Context, client *http.Client, method, path string, headers ...string) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, r.url+path, nil)
	if err != nil {
		return answer{}, err
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Add(name, value)
	}
	resp, err := client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(body)}, err
}

const (
	asAgent    = "Authorization: Bearer demo-agent"
	asApprover = "Authorization: Bearer demo-approver"
)

var (
	mayRead  = server.Require(server.Readers...)
	mayWrite = server.Require(server.Writers...)
)

func ok(c echo.Context) error { return c.String(http.StatusOK, "ok") }

// log collects what a server logs.
type log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// request waits for the log line of a request and returns its members. A request may end long after its caller has left.
func (l *log) request(t *testing.T, id string) map[string]any {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		for line := range strings.Lines(l.String()) {
			var members map[string]any
			if err := json.Unmarshal([]byte(line), &members); err != nil {
				t.Fatalf("the log line %q is not JSON: %v", line, err)
			}
			if members["request_id"] == id {
				return members
			}
		}
		wait(ctx)
	}
	t.Fatalf("no log line of request %s in:\n%s", id, l)
	return nil
}

// wait pauses between two looks at a condition that has no channel.
func wait(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(time.Millisecond):
	}
}
