package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"

	"github.com/einmal/einmal/e2e/harness"
	"github.com/einmal/einmal/e2e/scenarios"
)

// Options are the flags of `einmal scenarios`.
type Options struct {
	Names    []string // which scenarios; none means all
	List     bool     // say what there is instead of running it
	Database string   // "sqlite", "postgres" or a URL; see harness.Options
	JSON     bool     // results as JSON, without progress
	Seed     uint64   // what scenarios draw at random follows from it
	AtOnce   int      // how many are played at the same time; 0 means AtOnce
	Binary   string   // the einmal binary under test; empty means the one that is running
	Report   string   // file for the report; empty means none
	Version  string   // of that binary, for the report
}

// AtOnce is how many scenarios are played at the same time, whatever the number of processors: most of their time they wait, for leases to
// end and for answers that do not come. More of them would be what they take for a desk that says nothing.
const AtOnce = 3

// Run runs the scenarios, each against processes and a database of its own, and writes progress and results to w. The error
// says that the laboratory could not be used; whether every scenario passed is Results.Err.
func Run(ctx context.Context, opts Options, w io.Writer) (Results, error) {
	selected, err := choose(opts.Names)
	if err != nil {
		return Results{}, err
	}
	if opts.List {
		return Results{}, list(w, selected)
	}
	if opts.AtOnce == 0 {
		opts.AtOnce = AtOnce
	}
	if opts.Binary == "" {
		if opts.Binary, err = os.Executable(); err != nil {
			return Results{}, fmt.Errorf("find the running binary: %w", err)
		}
	}
	report, err := newReport(opts)
	if err != nil {
		return Results{}, err
	}
	lab, err := harness.New(ctx, harness.Options{Binary: opts.Binary, Database: opts.Database})
	if err != nil {
		return Results{}, err
	}
	var elsewhere []string
	if len(opts.Names) == 0 { // by name, they are skipped with the reason
		selected = slices.DeleteFunc(selected, func(s scenarios.Scenario) bool {
			other := s.Only != "" && s.Only != lab.Kind
			if other {
				elsewhere = append(elsewhere, fmt.Sprintf("%s is about %s alone", s.Name, s.Only))
			}
			return other
		})
	}
	play := playing{lab: lab, seed: opts.Seed, progress: newProgress(w, opts), report: report}
	results := play.all(ctx, selected, opts.AtOnce)
	results.elsewhere = elsewhere
	err = errors.Join(lab.Close(), report.write())
	if opts.JSON {
		return results, errors.Join(err, results.writeJSON(w))
	}
	err = errors.Join(err, results.writeTable(w))
	if opts.Report != "" && err == nil {
		fmt.Fprintf(w, "The report is %s: open it in a browser.\n", opts.Report)
	}
	return results, err
}

// choose returns the scenarios of these names, in their own order.
func choose(names []string) ([]scenarios.Scenario, error) {
	all := scenarios.All()
	if len(names) == 0 {
		return all, nil
	}
	for _, name := range names {
		if !slices.ContainsFunc(all, func(s scenarios.Scenario) bool { return s.Name == name }) {
			return nil, fmt.Errorf("no scenario is called %q; --list says which there are", name)
		}
	}
	return slices.DeleteFunc(all, func(s scenarios.Scenario) bool { return !slices.Contains(names, s.Name) }), nil
}

func list(w io.Writer, selected []scenarios.Scenario) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, s := range selected {
		fmt.Fprintf(table, "%s\t%s\n", s.Name, s.Promise)
	}
	return table.Flush()
}
