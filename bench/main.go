// Command bench measures what a ticket that is created exactly once costs, against a bare gorm insert of the same row behind the
// same HTTP stack. README.md says how to read what it prints.
//
//	main.go      the command line
//	bench.go     rounds: every variant back to back, so that one round's ratios share one machine's mood
//	variant.go   the kinds of request that are compared
//	target.go    the two services and their databases
//	bare.go      the service that everything is compared with
//	drain.go     effects: how soon they begin, how fast a queue of them is brought out
//	drive.go     callers sending one request after another
//	client.go    one caller's connection
//	usage.go     the processor time and allocations that it took
//	check.go     what must be true after every measurement, or it is no result
//	results.go   medians, the table and results.json
//
// It is a module of its own, so that what other benchmarks need stays out of the services' go.mod.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/pprof"
	"runtime/trace"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/einmal/einmal/pkg/database"
)

// settings are the command line.
type settings struct {
	databases  []database.Kind
	variants   []variant
	conns      []int
	drain      bool
	effects    int
	rounds     int
	duration   time.Duration
	slowCommit bool
	out        string
	cpuProfile string
	memProfile string
	trace      string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (err error) {
	s, err := parse(args)
	if err != nil {
		return err
	}
	finish, err := s.profile()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, finish()) }()

	report := newReport(s)
	for _, kind := range s.databases {
		if err := measureRequests(ctx, s, kind, report); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
		if !s.drain {
			continue
		}
		if err := measureDrain(ctx, s, kind, report); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	if err := report.print(os.Stdout); err != nil {
		return err
	}
	return report.write(s.out)
}

func parse(args []string) (s settings, err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	databases := flags.String("databases", "postgres,sqlite", "which databases, in this order")
	names := flags.String("variants", "bare,create,unsealed,replay,event,existing,drain", "which kinds of request; without bare there are no ratios")
	conns := flags.String("connections", "1,8,32", "how many callers at once")
	// An odd number of rounds, so that a median is a measured one. A second holds thousands of requests and few changes of the machine's mood.
	flags.IntVar(&s.rounds, "rounds", 5, "how often every variant is measured")
	flags.DurationVar(&s.duration, "duration", time.Second, "how long each measurement takes")
	flags.IntVar(&s.effects, "effects", 10_000, "how many effects the variant drain brings out in a round")
	flags.BoolVar(&s.slowCommit, "slow-commit", false, "make every flush of PostgreSQL's log take 1 ms longer, as on a slower disk")
	flags.StringVar(&s.out, "out", "results.json", "file for the results; empty: none")
	flags.StringVar(&s.cpuProfile, "cpuprofile", "", "file for a CPU profile of callers and services; combine with one variant")
	flags.StringVar(&s.memProfile, "memprofile", "", "file for a profile of all allocations; combine with one variant")
	flags.StringVar(&s.trace, "trace", "", "file for an execution trace; combine with one variant and a short duration")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	for _, name := range strings.Split(*databases, ",") {
		kind := database.Kind(name)
		if kind != database.Postgres && kind != database.SQLite {
			return s, fmt.Errorf("-databases: there is no %q, only postgres and sqlite", name)
		}
		s.databases = append(s.databases, kind)
	}
	for _, name := range strings.Split(*names, ",") {
		if name == "drain" {
			s.drain = true
			continue
		}
		i := slices.IndexFunc(variants, func(v variant) bool { return v.name == name })
		if i < 0 {
			return s, fmt.Errorf("-variants: there is no %q", name)
		}
		s.variants = append(s.variants, variants[i])
	}
	for _, text := range strings.Split(*conns, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return s, fmt.Errorf("-connections: %q is no number of callers", text)
		}
		s.conns = append(s.conns, n)
	}
	if s.rounds < 1 || s.duration <= 0 || s.effects < fillers || s.effects%fillers != 0 || flags.NArg() > 0 {
		return s, fmt.Errorf("-rounds and -duration must be above 0, -effects a multiple of %d, and there are no arguments", fillers)
	}
	return s, nil
}

// profile starts what was asked for; the returned function ends it.
func (s settings) profile() (finish func() error, err error) {
	var ends []func() error
	start := func(path string, start func(*os.File) error, end func(*os.File) error) error {
		if path == "" {
			return nil
		}
		file, err := os.Create(path)
		if err != nil {
			return err
		}
		ends = append(ends, func() error { return errors.Join(end(file), file.Close()) })
		return start(file)
	}
	stop := func(f func()) func(*os.File) error { return func(*os.File) error { f(); return nil } }
	finish = func() (err error) {
		for _, end := range ends {
			err = errors.Join(err, end())
		}
		return err
	}
	if s.memProfile != "" {
		runtime.MemProfileRate = 4 << 10 // an allocation every 4 KiB is enough to see all that a request allocates
	}
	err = errors.Join(
		start(s.memProfile, func(*os.File) error { return nil }, func(f *os.File) error { return pprof.Lookup("allocs").WriteTo(f, 0) }),
		start(s.cpuProfile, func(f *os.File) error { return pprof.StartCPUProfile(f) }, stop(pprof.StopCPUProfile)),
		start(s.trace, func(f *os.File) error { return trace.Start(f) }, stop(trace.Stop)),
	)
	return finish, err
}
