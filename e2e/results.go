package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/einmal/einmal/e2e/report"
	"github.com/einmal/einmal/e2e/scenarios"
)

// Results are what `einmal scenarios --json` prints.
type Results struct {
	Passed    int      `json:"passed"`
	Failed    int      `json:"failed"`
	Skipped   int      `json:"skipped"` // could not be played here, or not any more because the run was interrupted
	Scenarios []Result `json:"scenarios"`

	interrupted int      // of those that were skipped
	elsewhere   []string // what was left out without being asked for, since it is about the other database; counted nowhere
}

// Result is what became of one scenario.
type Result struct {
	Name     string  `json:"name"`
	Passed   bool    `json:"passed"`
	Seconds  float64 `json:"seconds"`
	Injected *int    `json:"injected"` // faults that really happened; null where the scenario injects none
	Effects  int     `json:"effects"`  // in the desk's ledger, where it has a desk, else tickets, counted behind the services' backs
	Detail   string  `json:"detail"`   // what was seen, or why it failed or was skipped

	skipped bool
}

// Err is nil if every scenario passed.
func (r Results) Err() error {
	switch {
	case r.Failed > 0:
		return fmt.Errorf("%d of %d scenarios failed", r.Failed, r.Passed+r.Failed+r.Skipped)
	case r.interrupted > 0:
		return fmt.Errorf("interrupted: %d of %d scenarios did not run", r.interrupted, r.Passed+r.Skipped)
	}
	return nil
}

// newResult is the result of a scenario that has had an outcome.
func newResult(s scenarios.Scenario, o scenarios.Outcome) Result {
	result := Result{
		Name:     s.Name,
		Passed:   o.Err == nil && o.Skipped == "",
		Seconds:  o.Took.Round(time.Millisecond).Seconds(),
		Injected: o.Injected,
		Effects:  o.Effects,
		Detail:   o.Detail,
	}
	switch {
	case o.Err != nil:
		result.Detail = o.Err.Error()
	case o.Skipped != "":
		result.Detail, result.skipped = "skipped: "+o.Skipped, true
	}
	return result
}

func (r *Results) add(result Result) {
	switch result.verdict() {
	case report.Failed:
		r.Failed++
	case report.Skipped:
		r.Skipped++
	default:
		r.Passed++
	}
	r.Scenarios = append(r.Scenarios, result)
}

func (r Results) writeJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(r)
}

func (r Results) writeTable(w io.Writer) error {
	whole := !isTerminal(w) // what is kept in a file or searched has no width
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "\nscenario\tresult\tseconds\tfaults\teffects\twhat was seen\n")
	for _, s := range r.Scenarios {
		fmt.Fprintf(table, "%s\t%s\t%.1f\t%s\t%d\t%s\n", s.Name, s.shown(), s.Seconds, s.faults(), s.Effects, inLine(s.Detail, whole))
	}
	fmt.Fprintf(table, "\n%d passed, %d failed, %d skipped\n", r.Passed, r.Failed, r.Skipped)
	for _, why := range r.elsewhere {
		fmt.Fprintf(table, "not among them: %s\n", why)
	}
	return table.Flush()
}

// inLine keeps a detail to a line; the whole of it is in the JSON, and for a failure above the table.
func inLine(detail string, whole bool) string {
	const most = 110 // with the columns before it, what a wide terminal shows
	line, _, more := strings.Cut(detail, "\n")
	if runes := []rune(line); !whole && len(runes) > most {
		line, more = string(runes[:most]), true
	}
	if more {
		line += " …"
	}
	return line
}

func (r Result) verdict() report.Verdict {
	switch {
	case r.Passed:
		return report.Passed
	case r.skipped:
		return report.Skipped
	}
	return report.Failed
}

// shown is the verdict as it is printed: a failure must not be overlooked.
func (r Result) shown() string {
	if v := r.verdict(); v != report.Failed {
		return string(v)
	}
	return "FAILED"
}

func (r Result) faults() string {
	if r.Injected == nil {
		return "-"
	}
	return fmt.Sprint(*r.Injected)
}
