package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/einmal/einmal/pkg/database"
)

// report is results.json.
type report struct {
	Go         string                   `json:"go"`
	CPUs       int                      `json:"cpus"`
	Versions   map[database.Kind]string `json:"versions"`
	Rounds     int                      `json:"rounds"`
	Seconds    float64                  `json:"seconds"` // of each measurement
	SlowCommit bool                     `json:"slow_commit"`
	Results    []*result                `json:"results"`
	Drains     []*drains                `json:"drains,omitempty"`
	Purges     []*purges                `json:"purges,omitempty"`
}

// result is one variant with one number of connections, over all rounds.
type result struct {
	Database    database.Kind `json:"database"`
	Connections int           `json:"connections"`
	Variant     string        `json:"variant"`
	PerSecond   spread        `json:"requests_per_second"`
	Ratio       spread        `json:"ratio_to_bare,omitzero"`     // of requests per second, each to the bare insert of its own round
	CPURatio    spread        `json:"cpu_ratio_to_bare,omitzero"` // what Ratio is where processors are the limit and nobody else uses them
	P50         spread        `json:"p50_ms"`
	P99         spread        `json:"p99_ms"`
	CPU         spread        `json:"cpu_us_per_request"` // of caller and service together
	PostgresCPU spread        `json:"postgres_cpu_us_per_request,omitzero"`
	Allocs      spread        `json:"allocations_per_request"`

	rounds []measurement
}

// drains is the variant drain, over all rounds.
type drains struct {
	Database    database.Kind `json:"database"`
	Effects     int           `json:"effects"`
	PerSecond   spread        `json:"effects_per_second"`
	P50         spread        `json:"begins_after_p50_ms"`
	P99         spread        `json:"begins_after_p99_ms"`
	CPU         spread        `json:"cpu_us_per_effect"`
	PostgresCPU spread        `json:"postgres_cpu_us_per_effect,omitzero"`
	DeskCPU     spread        `json:"desk_cpu_us_per_effect"`
	Heap        spread        `json:"heap_mb"`

	rounds []drained
}

// purges is the variant purge with one number of callers, over all rounds.
type purges struct {
	Database    database.Kind `json:"database"`
	Connections int           `json:"connections"`
	Keys        int           `json:"keys_in_a_round"`
	PerSecond   spread        `json:"keys_per_second"`
	Quiet       spread        `json:"quiet_p99_ms"`
	While       spread        `json:"purging_p99_ms"`
	Ratio       spread        `json:"p99_ratio"` // of each round, purging to quiet
	Ratio50     spread        `json:"p50_ratio"`

	rounds []purged
}

// spread is a median and what it is the median of.
type spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

func newReport(s settings) *report {
	return &report{
		Go: runtime.Version(), CPUs: runtime.GOMAXPROCS(0), Versions: map[database.Kind]string{},
		Rounds: s.rounds, Seconds: s.duration.Seconds(), SlowCommit: s.slowCommit,
	}
}

// add notes the measurement of one round.
func (r *report) add(kind database.Kind, conns int, variant string, m measurement) {
	of := r.find(kind, conns, variant)
	if of == nil {
		of = &result{Database: kind, Connections: conns, Variant: variant}
		r.Results = append(r.Results, of)
	}
	of.rounds = append(of.rounds, m)
}

func (r *report) find(kind database.Kind, conns int, variant string) *result {
	i := slices.IndexFunc(r.Results, func(of *result) bool {
		return of.Database == kind && of.Connections == conns && of.Variant == variant
	})
	if i < 0 {
		return nil
	}
	return r.Results[i]
}

// addDrained notes one round of effects.
func (r *report) addDrained(kind database.Kind, effects int, d drained) {
	i := slices.IndexFunc(r.Drains, func(of *drains) bool { return of.Database == kind })
	if i < 0 {
		i, r.Drains = len(r.Drains), append(r.Drains, &drains{Database: kind, Effects: effects})
	}
	r.Drains[i].rounds = append(r.Drains[i].rounds, d)
}

// addPurged notes one round of purging.
func (r *report) addPurged(kind database.Kind, conns, keys int, p purged) {
	i := slices.IndexFunc(r.Purges, func(of *purges) bool { return of.Database == kind && of.Connections == conns })
	if i < 0 {
		i, r.Purges = len(r.Purges), append(r.Purges, &purges{Database: kind, Connections: conns, Keys: keys})
	}
	r.Purges[i].rounds = append(r.Purges[i].rounds, p)
}

func (of *purges) summarise() {
	over := func(value func(p purged) float64) spread {
		var all []float64
		for _, p := range of.rounds {
			all = append(all, value(p))
		}
		return spreadOf(all)
	}
	of.PerSecond = over(func(p purged) float64 { return p.perSecond })
	of.Quiet = over(func(p purged) float64 { return milliseconds(p.quiet) })
	of.While = over(func(p purged) float64 { return milliseconds(p.while) })
	of.Ratio = over(func(p purged) float64 { return float64(p.while) / float64(p.quiet) })
	of.Ratio50 = over(func(p purged) float64 { return float64(p.while50) / float64(p.quiet50) })
}

// summarise computes every spread.
func (r *report) summarise() {
	for _, of := range r.Results {
		over := func(value func(m measurement) float64) spread {
			var all []float64
			for _, m := range of.rounds {
				all = append(all, value(m))
			}
			return spreadOf(all)
		}
		of.PerSecond = over(func(m measurement) float64 { return m.perSecond })
		of.P50 = over(func(m measurement) float64 { return milliseconds(m.p50) })
		of.P99 = over(func(m measurement) float64 { return milliseconds(m.p99) })
		of.CPU = over(func(m measurement) float64 { return microseconds(m.spent.cpu) / float64(m.requests) })
		of.PostgresCPU = over(func(m measurement) float64 { return microseconds(m.spent.postgres) / float64(m.requests) })
		of.Allocs = over(func(m measurement) float64 { return float64(m.spent.allocs) / float64(m.requests) })
		if bare := r.find(of.Database, of.Connections, "bare"); bare != nil {
			var ratios, cpuRatios []float64
			for round, m := range of.rounds {
				ratios = append(ratios, m.perSecond/bare.rounds[round].perSecond)
				cpuRatios = append(cpuRatios, float64(bare.rounds[round].cpuPerRequest())/float64(m.cpuPerRequest()))
			}
			of.Ratio, of.CPURatio = spreadOf(ratios), spreadOf(cpuRatios)
		}
	}
	for _, of := range r.Drains {
		of.summarise()
	}
	for _, of := range r.Purges {
		of.summarise()
	}
}

func (of *drains) summarise() {
	over := func(value func(d drained) float64) spread {
		var all []float64
		for _, d := range of.rounds {
			all = append(all, value(d))
		}
		return spreadOf(all)
	}
	each := func(t time.Duration) float64 { return microseconds(t) / float64(of.Effects) }
	of.PerSecond = over(func(d drained) float64 { return d.perSecond })
	of.P50 = over(func(d drained) float64 { return milliseconds(d.p50) })
	of.P99 = over(func(d drained) float64 { return milliseconds(d.p99) })
	of.CPU = over(func(d drained) float64 { return each(d.spent.cpu) })
	of.PostgresCPU = over(func(d drained) float64 { return each(d.spent.postgres) })
	of.DeskCPU = over(func(d drained) float64 { return each(d.desk) })
	of.Heap = over(func(d drained) float64 { return float64(d.heap) / (1 << 20) })
}

func spreadOf(values []float64) spread {
	slices.Sort(values)
	n := len(values)
	return spread{Median: thousandths((values[(n-1)/2] + values[n/2]) / 2), Min: thousandths(values[0]), Max: thousandths(values[n-1])}
}

// String is a ratio in the table.
func (s spread) String() string {
	if s == (spread{}) {
		return "none" // the bare insert was not measured
	}
	return fmt.Sprintf("%.2f (%.2f–%.2f)", s.Median, s.Min, s.Max)
}

// thousandths is as exact as anything here can be read.
func thousandths(v float64) float64 { return math.Round(v*1000) / 1000 }

func milliseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }
func microseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

// print writes the table.
func (r *report) print(out io.Writer) error {
	r.summarise()
	fmt.Fprintf(out, "%d rounds of %gs each, %d CPUs shared by callers, services and database, %s, %v\n", r.Rounds, r.Seconds, r.CPUs, r.Go, r.Versions)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	if len(r.Results) > 0 {
		fmt.Fprintln(table, "database\tconnections\tvariant\tratio (min–max)\tcpu ratio (min–max)\trequests/s\tp50 ms\tp99 ms\tcpu µs\tpostgres µs\tallocations\t")
	}
	for _, of := range r.Results {
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%s\t%.0f\t%.2f\t%.2f\t%.0f\t%.0f\t%.0f\t\n", of.Database, of.Connections, of.Variant, of.Ratio, of.CPURatio,
			of.PerSecond.Median, of.P50.Median, of.P99.Median, of.CPU.Median, of.PostgresCPU.Median, of.Allocs.Median)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if len(r.Drains) > 0 {
		fmt.Fprintln(table, "database\teffects\teffects/s (min–max)\tbegin after p50 ms\tp99 ms\tcpu µs\tpostgres µs\tdesk µs\theap MB\t")
	}
	for _, of := range r.Drains {
		fmt.Fprintf(table, "%s\t%d\t%.0f (%.0f–%.0f)\t%.2f\t%.2f\t%.0f\t%.0f\t%.0f\t%.0f\t\n", of.Database, of.Effects, of.PerSecond.Median, of.PerSecond.Min,
			of.PerSecond.Max, of.P50.Median, of.P99.Median, of.CPU.Median, of.PostgresCPU.Median, of.DeskCPU.Median, of.Heap.Median)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if len(r.Purges) > 0 {
		fmt.Fprintln(table, "database\tconnections\tkeys purged\tkeys/s\tquiet p99 ms\tpurging p99 ms\tp99 ratio (min–max)\tp50 ratio (min–max)\t")
	}
	for _, of := range r.Purges {
		fmt.Fprintf(table, "%s\t%d\t%d\t%.0f\t%.2f\t%.2f\t%s\t%s\t\n", of.Database, of.Connections, of.Keys*len(of.rounds), of.PerSecond.Median, of.Quiet.Median,
			of.While.Median, of.Ratio, of.Ratio50)
	}
	return table.Flush()
}

// write writes results.json, after print.
func (r *report) write(path string) error {
	if path == "" {
		return nil
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
