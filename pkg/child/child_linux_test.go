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
	comeAndGo() // the thread that started the child has to stay
	os.Stdout.WriteString(strconv.Itoa(p.Pid()) + "\n")
	<-p.Done()
}

// comeAndGo lets fifty threads begin, and returns when all of them have ended.
func comeAndGo() {
	threads, end := make(chan int), make(chan struct{})
	for range 50 {
		go func() {
			runtime.LockOSThread() // never unlocked: this thread ends with its goroutine
			threads <- syscall.Gettid()
			<-end
		}()
	}
	var began []int
	for range 50 {
		began = append(began, <-threads)
	}
	close(end)
	for _, thread := range began {
		for alive := thread != os.Getpid(); alive; { // Go keeps the first thread for ever
			_, err := os.Stat("/proc/self/task/" + strconv.Itoa(thread))
			alive = err == nil
		}
	}
}

// Elsewhere nothing ends the children of a killed process.
func TestDiesWithUs(t *testing.T) {
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

// running tells whether a process does anything: one that nobody has awaited yet (a zombie) does not.
func running(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && !strings.Contains(string(stat), ") Z ")
}
