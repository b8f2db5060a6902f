package einmal_test

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/e2e/harness"
)

// step is a command of the README with the output printed below it.
type step struct{ command, output string }

// console returns the commands of the README's console blocks, in order.
func console(t *testing.T) []step {
	t.Helper()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var steps []step
	for _, block := range regexp.MustCompile("(?s)```console\n(.*?)```").FindAllStringSubmatch(string(readme), -1) {
		for line := range strings.Lines(block[1]) {
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				steps = append(steps, step{command: strings.TrimSpace(command)})
			} else {
				steps[len(steps)-1].output += line
			}
		}
	}
	if len(steps) == 0 {
		t.Fatal("the README shows no commands")
	}
	return steps
}

// The walk-through is run as it is printed, against `einmal run`, each command in turn.
func TestReadmeShowsWhatHappens(t *testing.T) {
	addresses := startRun(t)
	for _, s := range console(t) {
		command := addresses.Replace(s.command)
		out, err := exec.CommandContext(t.Context(), "bash", "-c", command).CombinedOutput()
		if err != nil {
			t.Errorf("$ %s\n%v", s.command, err)
		}
		if diff := cmp.Diff(s.output, strings.ReplaceAll(string(out), "\r", "")); diff != "" {
			t.Errorf("$ %s\nthe README (-) prints something else than the service (+):\n%s", s.command, diff)
		}
	}
}

// Every file and target that the README names exists.
func TestReadmeNamesWhatExists(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range regexp.MustCompile(`\]\(([^):]+)\)`).FindAllStringSubmatch(string(readme), -1) {
		if _, err := os.Stat(filepath.FromSlash(link[1])); err != nil {
			t.Errorf("the README links to %s, which is not there", link[1])
		}
	}
	for _, path := range regexp.MustCompile("`((?:cmd|services|pkg|migrations|e2e|bench|docs)[a-z0-9/_.]*)`").FindAllStringSubmatch(string(readme), -1) {
		if _, err := os.Stat(filepath.FromSlash(path[1])); err != nil {
			t.Errorf("the README names %s, which is not there", path[1])
		}
	}
	for _, target := range regexp.MustCompile("(?m)(?:`|^)make ([a-z/]+)").FindAllStringSubmatch(string(readme), -1) {
		if !bytes.Contains(makefile, []byte("\n"+target[1]+":")) {
			t.Errorf("the README names make %s, which the Makefile does not have", target[1])
		}
	}
}

// startRun builds einmal and starts `einmal run` with data of its own. It returns what puts its addresses in place of those that the
// README names.
func startRun(t *testing.T) *strings.Replacer {
	t.Helper()
	dir := t.TempDir()
	binary, err := harness.Build(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
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
