package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// On a terminal the last line shows that the run is alive; colours are a choice of the reader.
func TestProgressOnATerminal(t *testing.T) {
	script, err := exec.LookPath("script") // gives a program a terminal
	switch {
	case err != nil && os.Getenv("CI") == "":
		t.Skip("NOT TESTED: there is no script here (util-linux)")
	case err != nil:
		t.Fatal(err)
	}
	run := func(env ...string) string {
		cmd := exec.CommandContext(t.Context(), script, "-qec", binary(t)+" scenarios lost_request other_account_same_key", filepath.Join(t.TempDir(), "typescript"))
		cmd.Env = append(cmd.Environ(), append([]string{"TERM=xterm", "NO_COLOR="}, env...)...)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	const green = "\x1b[32m✓\x1b[0m lost_request"
	t.Run("shows the scenarios that run, and what became of each", func(t *testing.T) {
		out := run()
		if !strings.Contains(out, "\r\x1b[K· 0 of 2, ") || !regexp.MustCompile(`s: (lost_request, other_account_same_key|other_account_same_key, lost_request)\r`).MatchString(out) || !strings.Contains(out, green) {
			t.Errorf("got %q", out)
		}
		if lines := strings.Count(out[:strings.Index(out, "scenario  ")], "\n"); lines != 4 { // the title, two scenarios, an empty one
			t.Errorf("%d lines above the table: %q", lines, out)
		}
	})
	t.Run("has no colours where NO_COLOR is set", func(t *testing.T) {
		if out := run("NO_COLOR=1"); strings.Contains(out, "\x1b[3") || !strings.Contains(out, "\x1b[K✓ lost_request") {
			t.Errorf("got %q", out)
		}
	})
	t.Run("writes nothing over where the terminal can't", func(t *testing.T) {
		if out := run("TERM=dumb"); strings.Contains(out, "\x1b") || !strings.Contains(out, "passed lost_request") {
			t.Errorf("got %q", out)
		}
	})
}
