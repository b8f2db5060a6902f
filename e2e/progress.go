package e2e

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/einmal/einmal/e2e/report"
	"github.com/einmal/einmal/e2e/scenarios"
)

// progress tells a person where a run is, in a line for each scenario: on a terminal from its beginning on, with the time that it takes, elsewhere when
// it has ended. Colours are for terminals only, and not where NO_COLOR is set (https://no-color.org).
type progress struct {
	w        io.Writer
	terminal bool
	colours  bool
	stop     func() // ends the line that is being written over
}

const (
	// logLines is how much of the services' logs is shown for a failed scenario: the last requests.
	logLines = 20

	// tick is how often the line of the scenario that runs is written over: often enough to look alive.
	tick = 100 * time.Millisecond

	wipe = "\r\x1b[K" // back to the beginning of the line, which is emptied
)

func newProgress(w io.Writer, opts Options) *progress {
	if opts.JSON {
		return &progress{w: io.Discard, stop: func() {}}
	}
	p := &progress{w: w, terminal: isTerminal(w), stop: func() {}}
	p.colours = p.terminal && os.Getenv("NO_COLOR") == ""
	fmt.Fprintf(w, "Failure scenarios on %s, seed %d\n", databaseName(opts.Database), opts.Seed)
	return p
}

func (p *progress) begin(s scenarios.Scenario, i, n int) {
	if !p.terminal {
		return
	}
	began, quit, ended := time.Now(), make(chan struct{}), make(chan struct{})
	p.stop = func() {
		close(quit)
		<-ended
		p.stop = func() {}
	}
	go func() {
		defer close(ended)
		ticker := time.NewTicker(tick)
		defer ticker.Stop()
		for {
			fmt.Fprintf(p.w, "%s· %-38s %5.1f s  %d of %d", wipe, s.Name, time.Since(began).Seconds(), i+1, n)
			select {
			case <-quit:
				fmt.Fprint(p.w, wipe)
				return
			case <-ticker.C:
			}
		}
	}()
}

func (p *progress) end(r Result, log string) {
	p.stop()
	if p.terminal {
		fmt.Fprintf(p.w, "%s %-38s %5.1f s\n", p.sign(r.verdict()), r.Name, r.Seconds)
	} else {
		fmt.Fprintf(p.w, "%s %s (%.1f s)\n", r.shown(), r.Name, r.Seconds)
	}
	if r.Passed || r.skipped {
		return
	}
	fmt.Fprintf(p.w, "    %s\n", strings.ReplaceAll(r.Detail, "\n", "\n    "))
	lines := strings.Split(strings.TrimSpace(log), "\n")
	for _, line := range lines[max(0, len(lines)-logLines):] {
		fmt.Fprintf(p.w, "    | %s\n", line)
	}
}

// sign is a verdict in one character.
func (p *progress) sign(v report.Verdict) string {
	sign, colour := "-", "33" // skipped, yellow
	switch v {
	case report.Passed:
		sign, colour = "✓", "32" // green
	case report.Failed:
		sign, colour = "✗", "31" // red
	}
	if p.colours {
		return "\x1b[" + colour + "m" + sign + "\x1b[0m"
	}
	return sign
}

// isTerminal tells whether w is shown to a person as it is written, by something that can go back to the beginning of a line.
func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// databaseName keeps passwords off the screen.
func databaseName(database string) string {
	switch {
	case strings.Contains(database, "://"):
		return "the PostgreSQL server that was named"
	case database == "sqlite":
		return "embedded SQLite"
	case database == "postgres":
		return "a private PostgreSQL server"
	}
	return database
}
