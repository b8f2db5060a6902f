package e2e

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/einmal/einmal/e2e/report"
)

// progress tells a person where a run is, in a line for each scenario that has ended. On a terminal the last line shows those that are being played, and
// the time. Colours are for terminals only, and not where NO_COLOR is set (https://no-color.org).
type progress struct {
	terminal bool
	colours  bool
	began    time.Time
	quit     func() // ends the last line; does nothing where there is none

	mu      sync.Mutex
	w       io.Writer
	running []string
	ended   int
	all     int
}

const (
	// logLines is how much of the services' logs is shown for a failed scenario: the last requests.
	logLines = 20

	// tick is how often the last line is written over: often enough to look alive.
	tick = 100 * time.Millisecond

	wipe = "\r\x1b[K" // back to the beginning of the line, which is emptied

	// lineLength is what every terminal shows in one line. A longer one could not be wiped.
	lineLength = 79
)

func newProgress(w io.Writer, opts Options) *progress {
	if opts.JSON {
		return &progress{w: io.Discard, quit: func() {}}
	}
	p := &progress{w: w, terminal: isTerminal(w), began: time.Now(), quit: func() {}}
	p.colours = p.terminal && os.Getenv("NO_COLOR") == ""
	fmt.Fprintf(w, "Failure scenarios on %s, seed %d\n", databaseName(opts.Database), opts.Seed)
	return p
}

// expect says how many scenarios there will be, and begins to show them.
func (p *progress) expect(all int) {
	p.all = all
	if !p.terminal {
		return
	}
	quit, ended := make(chan struct{}), make(chan struct{})
	p.quit = func() {
		close(quit)
		<-ended
		fmt.Fprint(p.w, wipe)
	}
	go func() {
		defer close(ended)
		ticker := time.NewTicker(tick)
		defer ticker.Stop()
		for {
			select {
			case <-quit:
				return
			case <-ticker.C:
				p.mu.Lock()
				p.show()
				p.mu.Unlock()
			}
		}
	}()
}

// close takes the last line away.
func (p *progress) close() { p.quit() }

// begin tells of a scenario that begins.
func (p *progress) begin(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = append(p.running, name)
	p.show()
}

// end tells what became of one.
func (p *progress) end(r Result, log string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = slices.DeleteFunc(p.running, func(name string) bool { return name == r.Name })
	p.ended++
	if p.terminal {
		fmt.Fprintf(p.w, "%s%s %-38s %5.1f s\n", wipe, p.sign(r.verdict()), r.Name, r.Seconds)
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

// show writes the last line.
func (p *progress) show() {
	if !p.terminal {
		return
	}
	line := fmt.Sprintf("· %d of %d, %.1f s: %s", p.ended, p.all, time.Since(p.began).Seconds(), strings.Join(p.running, ", "))
	fmt.Fprint(p.w, wipe+line[:min(len(line), lineLength)])
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
