// Command mutants breaks the code on purpose and checks that somebody notices.
//
//	go run ./e2e/mutants            every mutant; exit 0 only if each is killed
//	go run ./e2e/mutants NAME...    these
//	go run ./e2e/mutants -list      say what there is
//
// A mutant is a patch in e2e/mutants that breaks one rule and names the test or scenario that must turn red for it. Each is
// applied to a copy of the tree, compiled, tried and taken back. A mutant that nothing kills means that its rule could be dropped
// unseen. One that does not apply or compile any more, or whose test turns red elsewhere, shows nothing: that is an error, too.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"text/tabwriter"
	"time"
)

func main() {
	listOnly := flag.Bool("list", false, "say what there is instead of running it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Stdout, *listOnly, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, w io.Writer, listOnly bool, names []string) error {
	mutants, err := load(names)
	if err != nil {
		return err
	}
	if listOnly {
		return list(w, mutants)
	}
	t, err := copyTree(ctx)
	if err != nil {
		return err
	}
	err = attack(ctx, w, t, mutants)
	return errors.Join(err, t.remove())
}

func list(w io.Writer, mutants []mutant) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, m := range mutants {
		fmt.Fprintf(table, "%s\t%s\n\tkilled by %v\n", m.name, m.rule, m.killer)
	}
	return table.Flush()
}

var errInterrupted = errors.New("interrupted")

// attack runs every killer on the code as it is, where it must be green, and then each on its mutants, where it must be red.
func attack(ctx context.Context, w io.Writer, t *tree, mutants []mutant) error {
	begin := time.Now()
	killers, err := green(ctx, t, mutants)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%d killers are green on the code as it is (%.1f s)\n", killers, time.Since(begin).Seconds())

	killed, survived := 0, 0
	for _, m := range mutants {
		start := time.Now()
		red, err := try(ctx, t, m)
		if ctx.Err() != nil {
			return errInterrupted
		}
		verdict := "killed"
		switch {
		case err != nil:
			verdict = "BROKEN"
		case red:
			killed++
		default:
			verdict = "SURVIVED"
			survived++
		}
		fmt.Fprintf(w, "%-8s  %5.1f s  %s: %v\n", verdict, time.Since(start).Seconds(), m.name, m.killer)
		if err != nil {
			fmt.Fprintf(w, "          %v\n", err)
		}
	}
	fmt.Fprintf(w, "%d mutants, %d killed, %d survived\n", len(mutants), killed, survived)
	if killed < len(mutants) {
		return fmt.Errorf("%d of %d mutants were not killed", len(mutants)-killed, len(mutants))
	}
	return nil
}

// green runs each distinct killer, alone as it will be later, on the code as it is, and returns how many there are.
func green(ctx context.Context, t *tree, mutants []mutant) (count int, err error) {
	killers := map[string][]killer{} // by what must be built
	for _, m := range mutants {
		if target := m.killer.target(); !slices.Contains(killers[target], m.killer) {
			killers[target] = append(killers[target], m.killer)
			count++
		}
	}
	var errs []error
	for _, target := range slices.Sorted(maps.Keys(killers)) {
		binary, err := t.build(ctx, target)
		if err != nil {
			return 0, fmt.Errorf("build %s without any mutant: %w", target, err)
		}
		for _, k := range killers[target] {
			red, said, err := k.run(ctx, t, binary)
			if ctx.Err() != nil {
				return 0, errInterrupted
			}
			if err == nil && red {
				err = fmt.Errorf("it is red\n%s", said)
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("%v: %w", k, err))
			}
		}
	}
	if len(errs) > 0 {
		return 0, fmt.Errorf("not green on the code as it is: %w", errors.Join(errs...))
	}
	return count, nil
}

// try applies a mutant, runs its killer and takes the mutant back.
func try(ctx context.Context, t *tree, m mutant) (red bool, err error) {
	if err := t.apply(ctx, m.patch); err != nil {
		return false, fmt.Errorf("it does not apply: %w", err)
	}
	defer func() { err = errors.Join(err, t.revert(m.patch)) }()
	binary, err := t.build(ctx, m.killer.target())
	if err != nil {
		return false, fmt.Errorf("it does not compile: %w", err)
	}
	red, _, err = m.killer.run(ctx, t, binary)
	return red, err
}
