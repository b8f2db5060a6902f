package e2e

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/einmal/einmal/e2e/harness"
	"github.com/einmal/einmal/e2e/scenarios"
)

// playing is a run of scenarios in a laboratory.
type playing struct {
	lab      *harness.Lab
	seed     uint64
	progress *progress
	report   *reporter
}

// played is a scenario that was played to its end.
type played struct {
	result Result
	told   func(Result) // to the report
}

// all plays scenarios, several at once, and returns the results in the order of the scenarios. Those that would disturb others go first, alone; of the rest
// the last begin first, since the longest are the last of the story.
func (p playing) all(ctx context.Context, selected []scenarios.Scenario, atOnce int) Results {
	ended := make([]*played, len(selected)) // nil: interrupted
	order := func(alone bool) (indexes []int) {
		for i, s := range selected {
			if s.Alone == alone {
				indexes = append(indexes, i)
			}
		}
		return indexes
	}
	together := order(false)
	if atOnce > 1 {
		slices.Reverse(together)
	}
	p.progress.expect(len(selected))
	p.some(ctx, selected, ended, order(true), 1)
	p.some(ctx, selected, ended, together, atOnce)
	p.progress.close()

	results := Results{Scenarios: []Result{}} // [] in JSON, never null
	for _, e := range ended {
		if e == nil {
			results.interrupted++
			results.Skipped++
			continue
		}
		results.add(e.result)
		e.told(e.result)
	}
	return results
}

// some plays those with these indexes.
func (p playing) some(ctx context.Context, selected []scenarios.Scenario, ended []*played, indexes []int, atOnce int) {
	var under errgroup.Group
	under.SetLimit(atOnce)
	for _, i := range indexes {
		under.Go(func() error {
			ended[i] = p.one(ctx, selected[i])
			return nil
		})
	}
	_ = under.Wait() // what went wrong is in the results
}

// one plays one scenario. One that was interrupted did not fail: it is nil.
func (p playing) one(ctx context.Context, s scenarios.Scenario) *played {
	if ctx.Err() != nil {
		return nil
	}
	p.progress.begin(s.Name)
	outcome, told := p.report.play(ctx, s, p.lab, p.seed)
	if ctx.Err() != nil {
		return nil
	}
	result := newResult(s, outcome)
	p.progress.end(result, outcome.Log)
	return &played{result, told}
}
