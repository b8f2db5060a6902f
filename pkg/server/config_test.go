package server_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/server"
)

// Each role embeds the settings and says which port is its own.
type roles struct {
	Tickets struct {
		server.Config `set:"listen=127.0.0.1:8081"`
	} `cmd:""`
	Payments struct {
		server.Config `set:"listen=127.0.0.1:8082"`
	} `cmd:""`
}

func TestSettings(t *testing.T) {
	parse := func(t *testing.T, args ...string) (roles, error) {
		var r roles
		parser, err := kong.New(&r)
		if err != nil {
			t.Fatal(err)
		}
		_, err = parser.Parse(args)
		return r, err
	}
	defaults := server.Config{
		Listen: "127.0.0.1:8081", RateLimit: 5000, RateBurst: 10000, ShutdownGrace: 8 * time.Second, LogLevel: slog.LevelInfo,
	}

	t.Run("have defaults that work, each role with its own port", func(t *testing.T) {
		r, err := parse(t, "tickets")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(defaults, r.Tickets.Config); diff != "" {
			t.Error(diff)
		}
		if _, err := server.New(r.Tickets.Config, server.Service{Name: "tickets", Log: slog.Default()}); err != nil {
			t.Error(err)
		}
		if r, err := parse(t, "payments"); err != nil || r.Payments.Listen != "127.0.0.1:8082" {
			t.Errorf("payments on %q: %v", r.Payments.Listen, err)
		}
	})

	t.Run("come from the environment", func(t *testing.T) {
		for name, value := range map[string]string{
			"EINMAL_LISTEN": "0.0.0.0:80", "EINMAL_DEMO": "1", "EINMAL_TOKENS_FILE": "/etc/tokens", "EINMAL_RATE_LIMIT": "0.5", "EINMAL_RATE_BURST": "3",
			"EINMAL_DRAIN_DELAY": "3s", "EINMAL_SHUTDOWN_GRACE": "1m", "EINMAL_LOG_LEVEL": "debug",
		} {
			t.Setenv(name, value)
		}
		r, err := parse(t, "payments")
		if err != nil {
			t.Fatal(err)
		}
		want := server.Config{"0.0.0.0:80", "", "/etc/tokens", true, 0.5, 3, 3 * time.Second, time.Minute, slog.LevelDebug}
		if diff := cmp.Diff(want, r.Payments.Config); diff != "" {
			t.Error(diff)
		}
	})

	t.Run("that cannot work are refused by name", func(t *testing.T) {
		for want, change := range map[string]func(*server.Config, *server.Service){
			`EINMAL_LISTEN "8081" is not HOST:PORT`:          func(c *server.Config, _ *server.Service) { c.Listen = "8081" },
			"EINMAL_RATE_LIMIT 5 with EINMAL_RATE_BURST 0":   func(c *server.Config, _ *server.Service) { c.RateLimit, c.RateBurst = 5, 0 },
			"EINMAL_SHUTDOWN_GRACE cannot be negative":       func(c *server.Config, _ *server.Service) { c.ShutdownGrace = -1 },
			"lower EINMAL_WAIT_BUDGET":                       func(_ *server.Config, s *server.Service) { s.LongestAnswer = time.Hour },
			"load EINMAL_TOKENS_FILE: open /nowhere/tokens:": func(c *server.Config, _ *server.Service) { c.TokensFile = "/nowhere/tokens" },
		} {
			config, service := defaults, server.Service{Name: "tickets", Log: slog.Default()}
			change(&config, &service)
			if _, err := server.New(config, service); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %q", err, want)
			}
		}
	})
}
