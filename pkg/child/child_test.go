package child_test

import (
	"bufio"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/einmal/einmal/pkg/child"
)

// asParent makes this test binary start one child, print its id and wait to be killed.
const asParent = "EINMAL_TEST_CHILD_PARENT"

func TestMain(m *testing.M) {
	if os.Getenv(asParent) == "" {
		os.Exit(m.Run())
	}
	p, err := child.Start(exec.Command("sleep", "60"), syscall.SIGKILL)
	if err != nil {
		panic(err)
	}
	os.Stdout.WriteString(strconv.Itoa(p.Pid()) + "\n")
	// Threads come and go: the one that started the child has to stay.
	for range 50 {
		go func() {
			runtime.LockOSThread() // never unlocked: this thread ends with its goroutine
			time.Sleep(time.Millisecond)
		}()
	}
	<-p.Done()
}

func TestStop(t *testing.T) {
	t.Run("ends a process that obeys", func(t *testing.T) {
		p := start(t, "sleep", "60")
		if err := p.Stop(syscall.SIGTERM, 10*time.Second); err == nil || err.Error() != "signal: terminated" {
			t.Fatalf("got %v, want signal: terminated", err)
		}
		if got := p.KilledBy(); got != syscall.SIGTERM {
			t.Fatalf("killed by %v, want SIGTERM", got)
		}
	})
	t.Run("kills a process that does not", func(t *testing.T) {
		p := start(t, "sh", "-c", "trap '' TERM; while :; do sleep 0.1; done")
		time.Sleep(100 * time.Millisecond) // nothing outside the shell shows that the trap is set
		if err := p.Stop(syscall.SIGTERM, 200*time.Millisecond); err == nil || !strings.Contains(err.Error(), "was killed") {
			t.Fatalf("got %v, want an error that says it was killed", err)
		}
	})
	t.Run("reports how an ended process ended", func(t *testing.T) {
		p := start(t, "true")
		<-p.Done()
		if err := p.Stop(syscall.SIGTERM, time.Second); err != nil {
			t.Fatal(err)
		}
		if got := p.KilledBy(); got != 0 {
			t.Fatalf("killed by %v, want no signal", got)
		}
	})
}

func TestDiesWithUs(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends the children of a killed process")
	}
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), asParent+"=1")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond) // long enough for the parent's other threads to have ended
	if !running(pid) {
		t.Fatal("the child ended while its parent lived")
	}

	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	for deadline := time.Now().Add(10 * time.Second); running(pid); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the child outlived its killed parent")
		}
	}
}

func start(t *testing.T, name string, args ...string) *child.Process {
	t.Helper()
	p, err := child.Start(exec.Command(name, args...), syscall.SIGKILL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Stop(syscall.SIGKILL, time.Second) })
	return p
}

// running tells whether a process does anything: one that nobody has awaited yet (a zombie) does not.
func running(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && !strings.Contains(string(stat), ") Z ")
}
