package report

import (
	"bytes"
	_ "embed" // the templates
	"fmt"
	"html/template"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Run is what a report tells.
type Run struct {
	Version  string // of the binary under test
	Database string // without its password
	Seed     uint64
	Began    time.Time
	Took     time.Duration
	Sections []Section // as the scenarios were played
}

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

//go:embed drawing.html
var drawingHTML string

// page is the file. Its texts are escaped for the place where they stand; only what is written in these three files is not.
var page = func() *template.Template {
	t := template.New("page").Funcs(template.FuncMap{"px": px, "count": count, "seconds": seconds})
	template.Must(t.New("css").Parse(pageCSS))
	template.Must(t.New("drawing").Parse(drawingHTML))
	return template.Must(t.Parse(pageHTML))
}()

// Write writes the report as one HTML file, what failed first.
func Write(w io.Writer, run Run) error {
	slices.SortStableFunc(run.Sections, func(a, b Section) int { return a.Verdict.rank() - b.Verdict.rank() })
	var written bytes.Buffer
	if err := page.Execute(&written, run); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	if _, err := w.Write(bytes.Map(printable, written.Bytes())); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// printable replaces what has no place in a page, escaped or not: control characters, and what is no character.
func printable(r rune) rune {
	switch {
	case r == '\n' || r == '\t':
		return r
	case unicode.IsControl(r), r == '\ufffe', r == '\uffff':
		return unicode.ReplacementChar
	}
	return r // what is no UTF-8 has come here as unicode.ReplacementChar
}

// Of is how many scenarios have this verdict.
func (r Run) Of(v Verdict) (n int) {
	for _, s := range r.Sections {
		if s.Verdict == v {
			n++
		}
	}
	return n
}

// Share is the part of the scenarios that have this verdict, in percent.
func (r Run) Share(v Verdict) float64 {
	return 100 * float64(r.Of(v)) / float64(max(1, len(r.Sections)))
}

// Totals are the sums over all scenarios.
func (r Run) Totals() (t Totals) {
	for _, s := range r.Sections {
		t.Injected += s.injected
		t.Writes += s.Writes
		t.Operations += s.Operations
		t.Effects += max(0, s.Effects)
		if !s.Impossible {
			t.MostUnderOneKey = max(t.MostUnderOneKey, s.MostUnderOneKey)
		}
		t.Shown = t.Shown || s.Impossible
	}
	return t
}

// Totals are counted outside the services: writes by who sent them, operations in the rows, effects in ledgers or rows.
type Totals struct {
	Injected, Writes, Operations, Effects int

	MostUnderOneKey int
	Shown           bool // a scenario shows on purpose what no protocol prevents
}

func px(x float64) string { return strings.TrimSuffix(strconv.FormatFloat(x, 'f', 1, 64), ".0") }

// count is a number with its thousands apart.
func count(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "\u202f" + text[i:]
	}
	return text
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
