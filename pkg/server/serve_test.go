package server_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/einmal/einmal/pkg/server"
)

func TestShutdown(t *testing.T) {
	t.Run("lets the requests in progress end and refuses new connections meanwhile", func(t *testing.T) {
		entered, release := make(chan struct{}), make(chan struct{})
		s := start(t, func(e *echo.Echo) {
			e.POST("/v1/tickets", func(c echo.Context) error {
				close(entered)
				<-release
				if err := c.Request().Context().Err(); err != nil {
					t.Errorf("the shutdown canceled the work it should wait for: %v", err)
				}
				return c.String(201, "done")
			}, mayWrite)
		})
		got := make(chan answer, 1)
		go func() {
			a, err := s.try(t.Context(), http.DefaultClient, "POST", "/v1/tickets", asAgent)
			if err != nil {
				t.Errorf("the request in progress: %v", err)
			}
			got <- a
		}()
		<-entered
		stopped := make(chan error, 1)
		go func() { stopped <- s.stop() }()

		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		for {
			conn, err := net.Dial("tcp", s.Addr())
			if errors.Is(err, syscall.ECONNREFUSED) {
				break
			}
			if err == nil {
				conn.Close()
			}
			if wait(ctx); ctx.Err() != nil {
				t.Fatal("connections are still accepted")
			}
		}
		select {
		case err := <-stopped:
			t.Fatalf("left before the request ended: %v", err)
		default:
		}
		close(release)
		if a := <-got; a.status != 201 || a.body != "done" {
			t.Errorf("%d %q", a.status, a.body)
		}
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})

	t.Run("makes /readyz false before it refuses connections, for as long as DrainDelay says", func(t *testing.T) {
		s := start(t, nil, func(config *server.Config, _ *server.Service) { config.DrainDelay = time.Second })
		if a := s.send(t, "GET", "/readyz"); a.status != 200 {
			t.Fatalf("%d", a.status)
		}
		go s.stop()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		for {
			a := s.send(t, "GET", "/readyz")
			if a.status == 503 && strings.Contains(a.body, `"draining"`) {
				break
			}
			if wait(ctx); ctx.Err() != nil {
				t.Fatalf("%d %s", a.status, a.body)
			}
		}
		if a := s.send(t, "GET", "/healthz"); a.status != 200 {
			t.Errorf("a process that drains is alive, and yet /healthz is %d", a.status)
		}
	})

	t.Run("cuts what does not end within the grace and says how much that was", func(t *testing.T) {
		entered, left := make(chan struct{}), make(chan struct{})
		config := server.Config{Listen: "127.0.0.1:0", ShutdownGrace: 10 * time.Millisecond}
		s, err := server.New(config, server.Service{Name: "tickets", Log: config.Logger(&log{})})
		if err != nil {
			t.Fatal(err)
		}
		s.Echo().POST("/v1/tickets", func(c echo.Context) error {
			defer close(left)
			close(entered)
			<-c.Request().Context().Done()
			return c.Request().Context().Err()
		}, mayWrite)
		if err := s.Listen(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		go func() {
			<-entered
			stop()
		}()
		cut := make(chan error, 1)
		go func() {
			r := running{Server: s, url: "http://" + s.Addr()}
			_, err := r.try(t.Context(), http.DefaultClient, "POST", "/v1/tickets", asAgent)
			cut <- err
		}()
		err = s.Serve(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "cut 1 still in progress after EINMAL_SHUTDOWN_GRACE 10ms") {
			t.Errorf("error %v", err)
		}
		if err := <-cut; err == nil {
			t.Error("the caller got an answer")
		}
		<-left
	})
}

func TestListen(t *testing.T) {
	t.Run("says what to do when the address is taken", func(t *testing.T) {
		first := start(t, nil)
		config := server.Config{Listen: first.Addr()}
		second, err := server.New(config, server.Service{Name: "payments", Log: config.Logger(&log{})})
		if err != nil {
			t.Fatal(err)
		}
		err = second.Run(t.Context())
		if !errors.Is(err, syscall.EADDRINUSE) {
			t.Fatalf("error %v", err)
		}
		for _, want := range []string{"payments", "another process listens on " + first.Addr(), "EINMAL_LISTEN"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("error %q does not say %q", err, want)
			}
		}
	})

	t.Run("names the setting when the address is none of this machine's", func(t *testing.T) {
		config := server.Config{Listen: "192.0.2.1:80", Demo: true} // reserved for documentation
		s, err := server.New(config, server.Service{Name: "tickets", Log: config.Logger(&log{})})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "EINMAL_LISTEN 192.0.2.1:80") {
			t.Errorf("error %v", err)
		}
	})
}
