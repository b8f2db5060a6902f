package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/einmal/einmal/pkg/agent"
)

type agentDoCmd struct {
	File    string   `arg:"" name:"FILE" help:"Steps: JSON objects one after the other, or an array of them; - reads standard input."`
	Of      string   `name:"run" required:"" placeholder:"NAME" help:"Which piece of work this is: a step means the same in all of it, across restarts."`
	Target  []string `sep:"none" placeholder:"[NAME=]URL" help:"Where steps go that name this target, or none."`
	Ability []string `sep:"none" placeholder:"[NAME=]ABILITY" help:"What it can do: operations (as einmal's services), keys (it knows Idempotency-Key and can't be asked), none; default operations."`

	memory
	calling
}

// Help is what a step is.
func (agentDoCmd) Help() string {
	return `A step is a JSON object. All of its members:

    {
      "step": "pay-117",          its name in the run; without one the command is
      "target": "payments",       a --target NAME=URL; without one --target URL
      "method": "POST",           or PUT, PATCH, DELETE; POST without one
      "path": "/v1/payments",     the only one that is needed; no query
      "body": {"order_id": "1"},  an object; {} without one
      "retry": "same_operation",  or never: sent once, then only asked about
      "retry_of": "pay-116",      a step that was refused; this is a second try
      "cost": 120,                counted once against budgets of cost
      "budget": {                 of this step, across restarts
        "attempts": 5,                requests that may have the effect
        "deadline_seconds": 900,      from when the step begins
        "longest_wait_seconds": 60,   before any one request
        "cost": 120                   what it may cost; without one any
      }
    }

The same command under the same name is the same step, and is answered from the journal. Another command under the name is refused (step_changed). Steps are
done in turn, up to the first that is not done. A larger budget in a step that is not done lets it go on; the flags are budgets of the run.

` + exitStatuses
}

func (d *agentDoCmd) Run(ctx context.Context, streams streams) error {
	return d.tell(streams, func() (told, error) {
		text, err := d.read()
		if err != nil {
			return told{}, err
		}
		steps, err := agent.ParseSteps(text)
		if err != nil {
			return told{}, fmt.Errorf("%s: %w", d.name(), err)
		}
		places, err := targets(d.Target, d.Ability)
		if err != nil {
			return told{}, err
		}
		budget, err := d.budget()
		if err != nil {
			return told{}, err
		}
		config := agent.Config{Run: d.Of, Targets: places, Token: d.Token, Budget: budget, Progress: progress(streams)}
		return d.work(config, func(a *agent.Agent, _ *agent.Journal) ([]agent.Result, error) {
			results, err := a.Do(ctx, steps)
			if errors.Is(err, agent.ErrInvalid) {
				err = fmt.Errorf("%s: %w", d.name(), err)
			}
			return results, err
		})
	})
}

// name is what messages call the file.
func (d *agentDoCmd) name() string {
	if d.File == "-" {
		return "standard input"
	}
	return d.File
}

// mostRead bounds what is read of steps: more is no list of steps.
const mostRead = 64 << 20

func (d *agentDoCmd) read() ([]byte, error) {
	from := io.Reader(os.Stdin)
	if d.File != "-" {
		file, err := os.Open(d.File)
		if err != nil {
			return nil, fmt.Errorf("read steps: %w", err)
		}
		defer file.Close()
		from = file
	}
	text, err := io.ReadAll(io.LimitReader(from, mostRead+1))
	if err == nil && len(text) > mostRead {
		err = errors.New("there are more than 64 MiB")
	}
	if err != nil {
		return nil, fmt.Errorf("read steps: %w", err)
	}
	return text, nil
}

type agentResumeCmd struct {
	Of string `name:"run" placeholder:"NAME" help:"Only what is open of this run; default of all."`

	memory
	calling
}

// Help is what resume can't do.
func (agentResumeCmd) Help() string {
	return `The flags are budgets of runs. A step's own is given by doing the step again, with a larger "budget" in it (einmal agent do).

` + exitStatuses
}

func (r *agentResumeCmd) Run(ctx context.Context, streams streams) error {
	return r.tell(streams, func() (told, error) {
		budget, err := r.budget()
		if err != nil {
			return told{}, err
		}
		if _, err := agent.Read(r.Journal); errors.Is(err, fs.ErrNotExist) {
			return told{}, err // a slip in its name would look as if all were done
		}
		config := agent.Config{Run: r.Of, Token: r.Token, Budget: budget, Progress: progress(streams)}
		if config.Run == "" {
			config.Run = "resume" // nothing new is begun
		}
		return r.work(config, func(a *agent.Agent, j *agent.Journal) ([]agent.Result, error) {
			if err := hasRun(j.Entries(), r.Of); err != nil {
				return nil, err
			}
			return a.Resume(ctx, r.Of)
		})
	})
}

// work lets an agent work with the journal.
func (m memory) work(config agent.Config, use func(*agent.Agent, *agent.Journal) ([]agent.Result, error)) (told, error) {
	journal, err := agent.Open(m.Journal)
	if err != nil {
		return told{}, err
	}
	defer journal.Close()
	t := told{Cut: journal.Cut()}
	a, err := agent.New(journal, config)
	if err != nil {
		return t, err
	}
	results, err := use(a, journal)
	for _, r := range results {
		t.add(r)
	}
	return t, err
}

// progress tells on stderr what is waited for.
func progress(streams streams) func(*agent.Entry, string) {
	return func(e *agent.Entry, what string) {
		fmt.Fprintf(streams.err, "einmal agent: %s: %s\n", e.Step, what)
	}
}
