package main_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/einmal/einmal/e2e/harness"
	"github.com/einmal/einmal/pkg/database/dbtest"
)

// dir is where built puts the binary.
var dir string

// built builds einmal as it is shipped, once for all tests and inside of one: the cache of go test sees nothing of what was read before.
var built = sync.OnceValues(func() (string, error) { return harness.Build(context.Background(), dir) })

func TestMain(m *testing.M) {
	var err error
	if dir, err = os.MkdirTemp("", "einmal-cmd-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := dbtest.Run(m)
	os.RemoveAll(dir)
	os.Exit(code)
}

// ended is a process that has ended.
type ended struct {
	status   int
	out, err string
}

// command is einmal with these arguments, in a directory and with settings of its own.
func command(t *testing.T, settings []string, args ...string) *exec.Cmd {
	t.Helper()
	binary, err := built()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "EINMAL_") }), settings...)
	return cmd
}

// run runs einmal to its end.
func run(t *testing.T, settings []string, args ...string) ended {
	t.Helper()
	var out, log bytes.Buffer
	cmd := command(t, settings, args...)
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return ended{cmd.ProcessState.ExitCode(), out.String(), log.String()}
}

// checkRefused checks for an exit status and one line on stderr that says all of these.
func checkRefused(t *testing.T, e ended, status int, says ...string) {
	t.Helper()
	if e.status != status {
		t.Errorf("exit status %d, want %d", e.status, status)
	}
	if strings.Count(e.err, "\n") != 1 {
		t.Errorf("stderr is not one line:\n%s", e.err)
	}
	for _, text := range says {
		if !strings.Contains(e.err, text) {
			t.Errorf("stderr %q does not say %q", e.err, text)
		}
	}
}

func TestSettings(t *testing.T) {
	t.Run("an unknown one is refused, and the nearest known one is named", func(t *testing.T) {
		for _, role := range []string{"run", "tickets", "payments", "deployments", "scenarios", "fsck", "migrate", "policy"} {
			checkRefused(t, run(t, []string{"EINMAL_WAIT_BUGDET=10s"}, role), 2, "EINMAL_WAIT_BUGDET", "did you mean EINMAL_WAIT_BUDGET?")
			checkRefused(t, run(t, []string{"EINMAL_FOO=1"}, role), 2, "EINMAL_FOO", "einmal ROLE --help lists those")
		}
	})
	t.Run("one of another role is not unknown", func(t *testing.T) {
		if e := run(t, []string{"EINMAL_MIGRATE=false", "EINMAL_LISTEN=127.0.0.1:1"}, "policy"); e.status != 0 {
			t.Errorf("%+v", e)
		}
	})
	t.Run("a value that can't be read is refused by name", func(t *testing.T) {
		checkRefused(t, run(t, []string{"EINMAL_WAIT_BUDGET=soon"}, "tickets"), 2, "EINMAL_WAIT_BUDGET", "soon")
	})
	t.Run("help lists them with their defaults", func(t *testing.T) {
		e := run(t, nil, "tickets", "--help")
		help := strings.Join(strings.Fields(e.out), " ")
		for _, want := range []string{
			"($EINMAL_LISTEN); default 127.0.0.1:8081",
			"($EINMAL_DATABASE_URL); default sqlite:./data/einmal_tickets.db",
			"--wait-budget=2s", "($EINMAL_WAIT_BUDGET)",
		} {
			if !strings.Contains(help, want) {
				t.Errorf("help does not say %q:\n%s", want, e.out)
			}
		}
	})
	t.Run("a flag is stronger than the environment", func(t *testing.T) {
		e := run(t, []string{"EINMAL_WAIT_BUDGET=7s"}, "policy", "--wait-budget=3s")
		if !regexp.MustCompile(`duplicate waits +3s`).MatchString(e.out) {
			t.Errorf("got\n%s", e.out)
		}
	})
}

func TestCommandLine(t *testing.T) {
	t.Run("an unknown role is refused with where to look", func(t *testing.T) {
		checkRefused(t, run(t, nil, "ticket"), 2, "ticket", "einmal --help")
	})
	t.Run("no role is refused with where to look", func(t *testing.T) {
		checkRefused(t, run(t, nil), 2, "einmal --help")
	})
	t.Run("the version names the Go release", func(t *testing.T) {
		if e := run(t, nil, "--version"); e.status != 0 || !regexp.MustCompile(`^einmal \S+ go1\.`).MatchString(e.out) {
			t.Errorf("%+v", e)
		}
	})
	t.Run("help is no failure", func(t *testing.T) {
		if e := run(t, nil, "run", "--help"); e.status != 0 || e.err != "" {
			t.Errorf("%+v", e)
		}
	})
}

func TestPolicy(t *testing.T) {
	t.Run("is the document that the service publishes", func(t *testing.T) {
		for _, role := range []string{"tickets", "payments", "deployments"} {
			service := start(t, role, "EINMAL_DATABASE_URL=sqlite:"+filepath.Join(t.TempDir(), role+".db"))
			published := service.get(t, "/.well-known/idempotency-policy")
			printed := run(t, nil, "policy", "--json", "--service", role)
			if got, want := compact(t, printed.out), compact(t, published); got != want {
				t.Errorf("printed   %s\npublished %s", got, want)
			}
		}
	})
	t.Run("is a table for people", func(t *testing.T) {
		if e := run(t, nil, "policy"); e.status != 0 || !strings.Contains(e.out, "ticket.create") || !strings.Contains(e.out, "payment.create") {
			t.Errorf("%+v", e)
		}
	})
}

func TestHealthcheck(t *testing.T) {
	t.Run("succeeds when the service is ready", func(t *testing.T) {
		service := start(t, "tickets", "EINMAL_DATABASE_URL=sqlite:"+filepath.Join(t.TempDir(), "tickets.db"))
		if e := run(t, []string{"EINMAL_LISTEN=" + service.address}, "healthcheck"); e.status != 0 {
			t.Errorf("%+v", e)
		}
	})
	t.Run("fails when nobody listens", func(t *testing.T) {
		checkRefused(t, run(t, []string{"EINMAL_LISTEN=" + freeAddress(t)}, "healthcheck"), 1, "refused")
	})
}

// get is the body of a 200.
func (p *process) get(t *testing.T, path string) string {
	t.Helper()
	answer := harness.Do(t.Context(), harness.Call{Base: "http://" + p.address, Method: http.MethodGet, Path: path, Token: "demo-agent"})
	if answer.Err != nil || answer.Status != http.StatusOK {
		t.Fatalf("GET %s: %v", path, answer)
	}
	return string(answer.Body)
}
