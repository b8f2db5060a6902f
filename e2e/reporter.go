package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/einmal/einmal/e2e/harness"
	"github.com/einmal/einmal/e2e/record"
	"github.com/einmal/einmal/e2e/report"
	"github.com/einmal/einmal/e2e/scenarios"
)

// reporter records the scenarios of a run for its report. A nil reporter plays them without.
type reporter struct {
	file *os.File
	run  report.Run
}

// newReport opens the file at once: that it can't be written should not be found out after all scenarios.
func newReport(opts Options) (*reporter, error) {
	if opts.Report == "" {
		return nil, nil
	}
	file, err := os.Create(opts.Report)
	if err != nil {
		return nil, fmt.Errorf("write report: %w", err)
	}
	return &reporter{file: file, run: report.Run{
		Version: opts.Version, Database: databaseName(opts.Database), Seed: opts.Seed, Began: time.Now(),
	}}, nil
}

// play plays a scenario. The caller gives told its result.
func (r *reporter) play(ctx context.Context, s scenarios.Scenario, lab *harness.Lab, seed uint64) (_ scenarios.Outcome, told func(Result)) {
	if r == nil {
		return s.Play(ctx, lab, seed), func(Result) {}
	}
	log := record.New()
	outcome := s.Play(record.Into(ctx, log), lab, seed)
	return outcome, func(result Result) {
		r.run.Sections = append(r.run.Sections, report.Tell(report.Scenario{
			Name: s.Name, Promise: s.Promise, Verdict: result.verdict(), Detail: result.Detail, Log: outcome.Log, Took: outcome.Took,
			Injected: outcome.Injected, Effects: outcome.Effects, Impossible: s.Impossible, Recording: log.Read(),
		}))
	}
}

// write writes the file, of what was played so far if the run was interrupted.
func (r *reporter) write() error {
	if r == nil {
		return nil
	}
	r.run.Took = time.Since(r.run.Began)
	return errors.Join(report.Write(r.file, r.run), r.file.Close())
}
