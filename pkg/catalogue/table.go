package catalogue

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// WriteTable writes the policy for a person at a terminal: the terms, what each operation risks and may be tried, and what
// the numbers cannot say. It returns the first error of w.
func (p Policy) WriteTable(w io.Writer) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(cells ...string) { fmt.Fprintln(out, strings.Join(cells, "\t")) } // the error comes with Flush

	line("key", p.Key.Pattern+", unique within ("+p.Key.Scope+")")
	line("answers replayed for", seconds(p.Retention.ResponseSeconds))
	line("then key refused for", seconds(p.Retention.TombstoneSeconds))
	line("duplicate waits", fmt.Sprintf("%gs", p.WaitBudgetSeconds))
	line("fingerprint", p.FingerprintVersion)

	types := slices.Sorted(maps.Keys(p.Operations))
	line()
	line("OPERATION", "OWNER", "TARGET", "RISK", "EFFECTS", "KEY DOWNSTREAM", "APPROVAL", "PRIORITY", "MAX COST")
	for _, t := range types {
		e := p.Operations[t]
		line(t, e.Owner, e.Target, string(e.Risk), orNone(strings.Join(e.Effects, ", ")), string(e.DownstreamKey), e.Approval, e.Priority, orNone(e.MaxCost))
	}
	line()
	line("OPERATION", "DEADLINE", "ATTEMPTS", "LONGEST WAIT", "RETRY ON")
	for _, t := range types {
		e := p.Operations[t]
		line(t, seconds(int64(e.DeadlineSeconds)), fmt.Sprint(e.MaxAttempts), seconds(int64(e.LongestWaitSeconds)), join(e.RetryOn))
	}
	line()
	line("OPERATION", "IN DOUBT DECIDED BY", "WITHIN", "THEN ASK")
	for _, t := range types {
		e := p.Operations[t]
		line(t, orNone(e.ReviewOwner), within(e.ReviewDueSeconds), e.Escalation)
	}
	line()
	line("OPERATION", "DONE TWICE MEANS", "PROOF THAT IT HAPPENED")
	for _, t := range types {
		e := p.Operations[t]
		line(t, e.DuplicationCost, e.Proof)
	}
	return out.Flush()
}

// seconds writes a duration in the largest unit that leaves no remainder.
func seconds(n int64) string {
	switch {
	case n > 0 && n%86400 == 0:
		return fmt.Sprintf("%dd", n/86400)
	case n > 0 && n%3600 == 0:
		return fmt.Sprintf("%dh", n/3600)
	case n > 0 && n%60 == 0:
		return fmt.Sprintf("%dm", n/60)
	}
	return fmt.Sprintf("%ds", n)
}

// within is a time for a person; none where nobody is asked.
func within(n int) string {
	if n == 0 {
		return "none"
	}
	return seconds(int64(n))
}

func join(families []Failure) string {
	texts := make([]string, len(families))
	for i, f := range families {
		texts[i] = string(f)
	}
	return strings.Join(texts, ", ")
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
