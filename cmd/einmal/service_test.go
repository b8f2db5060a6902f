package main_test

import (
	"bytes"
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/einmal/einmal/e2e/harness"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
)

// process is a role that serves.
type process struct {
	*exec.Cmd
	address string
	out     text
	took    time.Duration // from its start until it was ready
}

// anyPort lets what is beside the service that a test is about take any port that is free: several of these tests may run at once.
var anyPort = []string{"EINMAL_SIMULATOR_LISTEN=127.0.0.1:0", "EINMAL_PAYMENTS_LISTEN=127.0.0.1:0", "EINMAL_DEPLOYMENTS_LISTEN=127.0.0.1:0"}

// start starts a role on a free port and waits until it is ready. The end of the test ends it.
func start(t *testing.T, role string, settings ...string) *process {
	t.Helper()
	p := &process{address: freeAddress(t)}
	p.Cmd = command(t, slices.Concat(anyPort, []string{"EINMAL_LISTEN=" + p.address}, settings), role)
	p.Stdout, p.Stderr = &p.out, &p.out
	began := time.Now()
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Process.Kill() // it may have left already
		_ = p.Wait()
		for _, secret := range []string{"Bearer ", "key-1", "Disk full"} { // as harness and create send them
			if strings.Contains(p.out.String(), secret) {
				t.Errorf("the log tells %q:\n%s", secret, p.out.String())
			}
		}
	})
	await(t, "the service is ready", func() bool {
		answer := harness.Do(t.Context(), harness.Call{Base: "http://" + p.address, Method: http.MethodGet, Path: "/readyz"})
		return answer.Status == http.StatusOK
	})
	p.took = time.Since(began)
	return p
}

// leave sends a signal and returns the exit status.
func (p *process) leave(t *testing.T, signal syscall.Signal) int {
	t.Helper()
	if err := p.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	_ = p.Wait() // the exit status says it all
	return p.ProcessState.ExitCode()
}

func TestRun(t *testing.T) {
	t.Run("is ready within a second and says where", func(t *testing.T) {
		fastest := time.Hour
		for range 3 { // the promise is about the program, not about what else the machine is doing
			p := start(t, "run")
			fastest = min(fastest, p.took)
			await(t, "it says where it listens", func() bool { return strings.Contains(p.out.String(), "http://"+p.address) })
			p.leave(t, syscall.SIGTERM)
		}
		if fastest > time.Second {
			t.Errorf("ready after %v", fastest)
		}
	})

	t.Run("keeps its data in DIR, and under the name that the setting begins", func(t *testing.T) {
		p := start(t, "run")
		if _, err := os.Stat(filepath.Join(p.Dir, "data", "einmal_tickets.db")); err != nil {
			t.Error(err)
		}
		dir := t.TempDir()
		start(t, "run", "EINMAL_DATABASE_URL=sqlite:"+filepath.Join(dir, "other"))
		if _, err := os.Stat(filepath.Join(dir, "other_tickets.db")); err != nil {
			t.Error(err)
		}
	})

	t.Run("needs less than 80 MB when idle", func(t *testing.T) {
		if runtime.GOOS != "linux" {
			return // /proc is Linux
		}
		p := start(t, "run")
		if got := resident(t, p.Process.Pid); got > 80<<20 {
			t.Errorf("%d MB resident", got>>20)
		}
	})

	t.Run("leaves with 0 when asked to", func(t *testing.T) {
		for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
			if status := start(t, "run").leave(t, signal); status != 0 {
				t.Errorf("exit status %d after %v", status, signal)
			}
		}
	})

	t.Run("says what to do when the server has no such database", func(t *testing.T) {
		there, err := url.Parse(dbtest.URL(t, database.Postgres))
		if err != nil {
			t.Fatal(err)
		}
		there.Path = "/nowhere"
		for _, role := range []string{"run", "tickets"} {
			checkRefused(t, run(t, append([]string{"EINMAL_DATABASE_URL=" + there.String()}, anyPort...), role), 1, "nowhere", "createdb")
		}
	})

	t.Run("says what to do when its port is taken", func(t *testing.T) {
		first := start(t, "tickets")
		settings := []string{"EINMAL_LISTEN", "EINMAL_PAYMENTS_LISTEN", "EINMAL_DEPLOYMENTS_LISTEN", "EINMAL_SIMULATOR_LISTEN"}
		for _, taken := range settings {
			var addresses []string
			for _, setting := range settings {
				address := "127.0.0.1:0"
				if setting == taken {
					address = first.address
				}
				addresses = append(addresses, setting+"="+address)
			}
			refused := run(t, addresses, "run")
			checkRefused(t, refused, 1, first.address, taken)
			if taken != "EINMAL_LISTEN" && strings.Contains(refused.err, "EINMAL_LISTEN") {
				t.Errorf("names a setting that is right: %s", refused.err)
			}
		}
	})

	t.Run("mirrors what is created at the desk that it simulates, and at no desk if it is told of one that is away", func(t *testing.T) {
		p := start(t, "run")
		p.create(t, "key-1")
		await(t, "the desk has the ticket", func() bool { return strings.Contains(p.mirrors(t), `"state":"succeeded","reference":"desk_`) })
		if status := p.leave(t, syscall.SIGTERM); status != 0 {
			t.Errorf("exit status %d", status)
		}
		away := start(t, "run", "EINMAL_PROVIDER_URL=http://"+freeAddress(t))
		if strings.Contains(away.out.String(), "simulated") {
			t.Errorf("a desk is simulated:\n%s", away.out.String())
		}
		away.create(t, "key-1") // which does not need the desk
		if got := away.mirrors(t); !strings.Contains(got, `"mirror":{`) || strings.Contains(got, "desk_") {
			t.Errorf("tickets: %s", got)
		}
	})

	t.Run("takes payments at the provider that it simulates, which tells it of them", func(t *testing.T) {
		payments, outside := freeAddress(t), freeAddress(t)
		start(t, "run", "EINMAL_PAYMENTS_LISTEN="+payments, "EINMAL_SIMULATOR_LISTEN="+outside)
		ask := func(base, method, path, key, body string) harness.Answer {
			return harness.Do(t.Context(), harness.Call{Base: "http://" + base, Method: method, Path: path, Token: "demo-agent", Key: key, Body: body})
		}
		if a := ask(payments, http.MethodPut, "/v1/orders/o-1", "key-1", `{"amount":"12.50","currency":"EUR","payee":"Hammer"}`); a.Status != http.StatusCreated {
			t.Fatalf("an order: %v", a)
		}
		await(t, "it is authorised", func() bool {
			return ask(payments, http.MethodPost, "/v1/payments", "key-2", `{"order_id":"o-1","amount":"12.5","currency":"EUR"}`).Text("state") == "authorized"
		})
		await(t, "the event about it is accepted", func() bool {
			events := string(ask(outside, http.MethodGet, "/_webhooks", "", "").Body)
			return strings.Contains(events, "amount_capturable_updated") && strings.Contains(events, `"pending":0`)
		})
	})

	t.Run("brings releases out at the cluster that it simulates", func(t *testing.T) {
		deployments := freeAddress(t)
		start(t, "run", "EINMAL_DEPLOYMENTS_LISTEN="+deployments)
		a := harness.Do(t.Context(), harness.Call{
			Base: "http://" + deployments, Method: http.MethodPost, Path: "/v1/deployments", Token: "demo-agent", Key: "key-1",
			Header: http.Header{"Prefer": {"wait=25"}},
			Body:   `{"service":"web","environment":"staging","artifact":"web@sha256:` + strings.Repeat("a", 64) + `"}`,
		})
		if a.Status != http.StatusCreated || a.Text("state") != "succeeded" {
			t.Errorf("%v", a)
		}
	})

	t.Run("remembers after a restart", func(t *testing.T) {
		dir := t.TempDir()
		kept := []string{"EINMAL_DATABASE_URL=sqlite:" + filepath.Join(dir, "einmal"), "EINMAL_AUDIT_DIR=" + filepath.Join(dir, "audit")}
		first := start(t, "run", kept...)
		executed := first.create(t, "key-1")
		first.leave(t, syscall.SIGTERM)
		replayed := start(t, "run", kept...).create(t, "key-1")
		if replayed.Outcome() != "replayed" || !replayed.Same(executed) {
			t.Errorf("executed %v\nthen     %v", executed, replayed)
		}
	})
}

// mirrors are the tickets, with what they say of the desk.
func (p *process) mirrors(t *testing.T) string {
	t.Helper()
	return string(harness.Do(t.Context(), harness.Call{Base: "http://" + p.address, Method: http.MethodGet, Path: "/v1/tickets", Token: "demo-agent"}).Body)
}

func (p *process) create(t *testing.T, key string) harness.Answer {
	t.Helper()
	answer := harness.Do(t.Context(), harness.Call{
		Base: "http://" + p.address, Method: http.MethodPost, Path: "/v1/tickets", Token: "demo-agent", Key: key,
		Body: `{"project": "ops", "title": "Disk full on db1"}`,
	})
	if answer.Err != nil || answer.Status != http.StatusCreated {
		t.Fatalf("create a ticket: %v", answer)
	}
	return answer
}

// text is output that is read while it is written.
type text struct {
	mu      sync.Mutex
	written bytes.Buffer
}

func (t *text) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.written.Write(p)
}

func (t *text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.written.String()
}

// resident is the memory of a process that is not swapped or shared with files.
func resident(t *testing.T, pid int) int {
	t.Helper()
	statm, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(statm))[1])
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for !condition() {
		select {
		case <-deadline:
			t.Fatalf("waited in vain until %s", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func compact(t *testing.T, document string) string {
	t.Helper()
	var out bytes.Buffer
	if err := json.Compact(&out, []byte(document)); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
