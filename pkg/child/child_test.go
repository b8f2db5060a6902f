package child_test

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/einmal/einmal/pkg/child"
)

func TestStop(t *testing.T) {
	t.Run("ends a process that obeys", func(t *testing.T) {
		p := start(t, exec.Command("sleep", "60"))
		if err := p.Stop(syscall.SIGTERM, 10*time.Second); err == nil || err.Error() != "signal: terminated" {
			t.Fatalf("got %v, want signal: terminated", err)
		}
		if got := p.KilledBy(); got != syscall.SIGTERM {
			t.Fatalf("killed by %v, want SIGTERM", got)
		}
	})
	t.Run("kills a process that does not", func(t *testing.T) {
		said, says, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer said.Close()
		cmd := exec.Command("sh", "-c", "trap '' TERM; echo deaf; while :; do sleep 0.1; done")
		cmd.Stdout = says
		p := start(t, cmd)
		says.Close()
		if line, err := bufio.NewReader(said).ReadString('\n'); err != nil || line != "deaf\n" {
			t.Fatalf("it says %q, %v", line, err)
		}
		if err := p.Stop(syscall.SIGTERM, 200*time.Millisecond); err == nil || !strings.Contains(err.Error(), "was killed") {
			t.Fatalf("got %v, want an error that says it was killed", err)
		}
	})
	t.Run("reports how an ended process ended", func(t *testing.T) {
		p := start(t, exec.Command("true"))
		<-p.Done()
		if err := p.Stop(syscall.SIGTERM, time.Second); err != nil {
			t.Fatal(err)
		}
		if got := p.KilledBy(); got != 0 {
			t.Fatalf("killed by %v, want no signal", got)
		}
	})
}

func start(t *testing.T, cmd *exec.Cmd) *child.Process {
	t.Helper()
	p, err := child.Start(cmd, syscall.SIGKILL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Stop(syscall.SIGKILL, time.Second) })
	return p
}
