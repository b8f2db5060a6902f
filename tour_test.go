package einmal_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/e2e/harness"
)

// step is a command of a page with the output printed below it.
type step struct{ command, output string }

// tours are the pages whose console blocks are run as they are printed.
func tours(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob("docs/tour/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no tours: %v", err)
	}
	return append(pages, "README.md")
}

// console returns the commands of a page's console blocks, in order.
func console(t *testing.T, page string) []step {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var steps []step
	for _, block := range regexp.MustCompile("(?s)```console\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		for line := range strings.Lines(block[1]) {
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				steps = append(steps, step{command: strings.TrimSpace(command)})
			} else {
				steps[len(steps)-1].output += line
			}
		}
	}
	if len(steps) == 0 {
		t.Fatalf("%s shows no commands", page)
	}
	return steps
}

// Each page is run as it is printed, in one shell, against an `einmal run` of its own.
func TestToursShowWhatHappens(t *testing.T) {
	binary, err := harness.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range tours(t) {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			addresses, steps := startRun(t, binary), console(t, page)
			shell := newShell(t)
			for _, s := range steps {
				out, status := shell.run(addresses.Replace(s.command))
				if status != 0 {
					t.Errorf("$ %s\nended with %d", s.command, status)
				}
				if diff := cmp.Diff(s.output, strings.ReplaceAll(out, "\r", "")); diff != "" {
					t.Errorf("$ %s\n%s (-) prints something else than the service (+):\n%s", s.command, page, diff)
				}
			}
		})
	}
}

// shell is a bash that keeps its variables and functions from one command to the next.
type shell struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Reader
}

func newShell(t *testing.T) *shell {
	t.Helper()
	bash := exec.CommandContext(t.Context(), "bash", "-s")
	in, err := bash.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := bash.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	bash.Stderr = bash.Stdout
	if err := bash.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = bash.Wait() // how its last command ended is known
	})
	return &shell{t, in, bufio.NewReader(out)}
}

// run returns what a command has printed, and its exit status.
func (s *shell) run(command string) (out string, status int) {
	s.t.Helper()
	const end = "\x1e" // the record separator: nothing prints one
	if _, err := fmt.Fprintf(s.in, "%s\nprintf '%%s%%d%%s' '%s' $? '%s'\n", command, end, end); err != nil {
		s.t.Fatal(err)
	}
	out, err := s.out.ReadString(end[0])
	if err != nil {
		s.t.Fatalf("$ %s\n%s%v", command, out, err)
	}
	code, err := s.out.ReadString(end[0])
	if err != nil {
		s.t.Fatalf("$ %s\n%v", command, err)
	}
	if status, err = strconv.Atoi(strings.TrimSuffix(code, end)); err != nil {
		s.t.Fatalf("$ %s\n%v", command, err)
	}
	return strings.TrimSuffix(out, end), status
}

// Every file and target that a page names exists.
func TestPagesNameWhatExists(t *testing.T) {
	pages := []string{"README.md", "CONTRIBUTING.md"}
	for _, below := range []string{"docs/*.md", "docs/*/*.md", "*/*/README.md"} {
		found, err := filepath.Glob(below)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range regexp.MustCompile(`\]\(([\w./-]+)\)`).FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), filepath.FromSlash(link[1]))); err != nil {
				t.Errorf("%s links to %s, which is not there", page, link[1])
			}
		}
		for _, path := range regexp.MustCompile("`((?:cmd|services|pkg|migrations|e2e|bench|docs)[a-z0-9/_.]*)`").FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.FromSlash(path[1])); err != nil {
				t.Errorf("%s names %s, which is not there", page, path[1])
			}
		}
		for _, target := range regexp.MustCompile("(?m)(?:`|^)make ([a-z/]+)").FindAllStringSubmatch(string(text), -1) {
			if !bytes.Contains(makefile, []byte("\n"+target[1]+":")) {
				t.Errorf("%s names make %s, which the Makefile does not have", page, target[1])
			}
		}
	}
}

// startRun starts `einmal run` with data of its own. It returns what puts its addresses in place of those that the pages name.
func startRun(t *testing.T, binary string) *strings.Replacer {
	t.Helper()
	dir := t.TempDir()
	tickets, payments, deployments, outside := freeAddress(t), freeAddress(t), freeAddress(t), freeAddress(t)

	var log bytes.Buffer
	run := exec.CommandContext(t.Context(), binary, "run", "--data", dir,
		"--listen", tickets, "--payments-listen", payments, "--deployments-listen", deployments, "--simulator-listen", outside)
	run.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "EINMAL_") })
	run.Stdout, run.Stderr = &log, &log
	run.Cancel = func() error { return run.Process.Signal(syscall.SIGTERM) } // the end of the test: it must drain and exit 0
	run.WaitDelay = 10 * time.Second
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := run.Wait(); err != nil && run.ProcessState.ExitCode() != 0 {
			t.Errorf("einmal run: %v\n%s", err, log.String())
		}
	})
	for _, address := range []string{tickets, payments, deployments, outside} {
		awaitReady(t, address)
	}
	return strings.NewReplacer("127.0.0.1:8081", tickets, "127.0.0.1:8082", payments, "127.0.0.1:8083", deployments, "127.0.0.1:8090", outside)
}

// freeAddress is one that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func awaitReady(t *testing.T, address string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", nil)
		if err != nil {
			t.Fatal(err)
		}
		if response, err := http.DefaultClient.Do(request); err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-ctx.Done():
			t.Fatalf("einmal run is not ready at %s: %v", address, ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}
