package e2e

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/einmal/einmal/e2e/scenarios"
)

// progress tells a person where a run is: on a terminal in one line that is written over, elsewhere in a line for each scenario that has ended.
type progress struct {
	w        io.Writer
	terminal bool
}

// logLines is how much of the services' logs is shown for a failed scenario: the last requests.
const logLines = 20

func newProgress(w io.Writer, opts Options) *progress {
	if opts.JSON {
		return &progress{w: io.Discard}
	}
	p := &progress{w: w, terminal: isTerminal(w)}
	fmt.Fprintf(w, "Failure scenarios on %s, seed %d\n", databaseName(opts.Database), opts.Seed)
	return p
}

func (p *progress) begin(s scenarios.Scenario, i, n int) {
	if p.terminal {
		fmt.Fprintf(p.w, "\r\x1b[K[%d/%d] %s …", i+1, n, s.Name)
	}
}

func (p *progress) end(r Result, log string) {
	if p.terminal {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
	if p.terminal && r.Passed {
		return // the table will say it
	}
	fmt.Fprintf(p.w, "%s %s (%.1f s)\n", r.shown(), r.Name, r.Seconds)
	if r.Passed || r.skipped {
		return
	}
	fmt.Fprintf(p.w, "    %s\n", strings.ReplaceAll(r.Detail, "\n", "\n    "))
	lines := strings.Split(strings.TrimSpace(log), "\n")
	for _, line := range lines[max(0, len(lines)-logLines):] {
		fmt.Fprintf(p.w, "    | %s\n", line)
	}
}

// isTerminal tells whether w is shown to a person as it is written.
func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// databaseName keeps passwords off the screen.
func databaseName(database string) string {
	if strings.Contains(database, "://") {
		return "the PostgreSQL server that was named"
	}
	return database
}
