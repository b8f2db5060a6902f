package report

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/einmal/einmal/e2e/record"
)

// Verdict is what became of a scenario.
type Verdict string

const (
	Failed  Verdict = "failed"
	Passed  Verdict = "passed"
	Skipped Verdict = "skipped"
)

// rank puts what failed first.
func (v Verdict) rank() int { return slices.Index([]Verdict{Failed, Passed, Skipped}, v) }

// Scenario is one scenario that was played, with what was recorded.
type Scenario struct {
	Name       string
	Promise    string
	Verdict    Verdict
	Detail     string // what was seen, or why it failed or was skipped
	Log        string // of the services, shown where it failed
	Took       time.Duration
	Injected   *int // nil if it injects nothing
	Effects    int  // -1: they could not be counted
	Impossible bool // it shows what no protocol prevents
	Recording  record.Recording
}

// injectsNone is what is said of the faults of a scenario that breaks nothing.
const injectsNone = "injects no fault"

// Section is what the report says of one scenario. It no longer holds the recording.
type Section struct {
	Name, Promise   string
	Verdict         Verdict
	Seen            []string
	Error, Log      string
	Took            time.Duration
	Faults          string // how many, or why none
	Writes          int
	Operations      int
	Effects         int
	MostUnderOneKey int
	Impossible      bool
	Chapters        []Chapter
	Injections      []Injection
	Ledgers         []Ledger
	Tables          []Table
	Dropped         int

	injected int
}

// Chapter is one diagram: of the whole scenario, or of one of its parts.
type Chapter struct {
	Name    string
	Drawing drawing
	Drawn   int // messages in the diagram, or folded into it
	Left    int // left out of it
}

// Tell makes a section of a scenario.
func Tell(sc Scenario) Section {
	section := Section{
		Name: sc.Name, Promise: sc.Promise, Verdict: sc.Verdict, Took: sc.Took, Faults: injectsNone, Effects: sc.Effects,
		Impossible: sc.Impossible, Dropped: sc.Recording.Dropped,
	}
	if sc.Verdict == Failed {
		section.Error, section.Log = sc.Detail, lastLines(sc.Log)
	} else if sc.Detail != "" {
		section.Seen = strings.Split(sc.Detail, "; ")
	}
	if sc.Injected != nil {
		section.injected = *sc.Injected
		section.Faults = plural(section.injected, "fault")
	}
	s := tell(sc.Recording)
	section.Writes = s.writes()
	for _, d := range s.Databases {
		for _, t := range d.Tables {
			if t.Name == "operations" {
				section.Operations += t.Total
			}
		}
	}
	if len(s.steps) > 0 {
		section.Chapters = s.chapters(sc.Name)
	}
	section.Injections = s.injections()
	section.Ledgers, section.MostUnderOneKey = s.ledgers()
	section.Tables = s.tables()
	return section
}

// writes is how many requests callers have sent that were to change something.
func (s *story) writes() (n int) {
	for _, m := range s.Messages {
		_, ofPlace := s.lives.places[m.From]
		if m.From != "" && m.From != laboratory && !ofPlace && m.Method != http.MethodGet && m.Method != http.MethodHead {
			n++
		}
	}
	return n
}

// chapters draws each part of the scenario.
func (s *story) chapters(scenario string) (all []Chapter) {
	began := s.steps[0].at
	rest := s.steps
	parts := s.Parts
	if len(parts) == 0 {
		parts = []record.Part{{}}
	}
	for i, part := range parts {
		steps := rest
		if i+1 < len(parts) {
			end := slices.IndexFunc(rest, func(one step) bool { return !one.at.Before(parts[i+1].At) })
			if end >= 0 {
				steps, rest = rest[:end], rest[end:]
			} else {
				rest = nil
			}
		}
		if len(steps) == 0 {
			continue
		}
		chapter := Chapter{Name: part.Name}
		chosen := choose(fold(steps))
		for _, one := range chosen {
			chapter.Left += one.omitted
			if !one.isMark() && one.omitted == 0 {
				chapter.Drawn += one.times
			}
		}
		label := "Sequence diagram of " + scenario
		if part.Name != "" {
			label += ", part " + part.Name
		}
		chapter.Drawing = draw(label, chosen, s.lives, began)
		all = append(all, chapter)
	}
	return all
}

// lastLines are the last lines of a log, the ones about a failure.
func lastLines(log string) string {
	const most = 30
	lines := strings.Split(strings.TrimSpace(log), "\n")
	return strings.Join(lines[max(0, len(lines)-most):], "\n")
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%s %ss", count(n), noun)
}

// FaultCount is how many faults happened, for a column.
func (s Section) FaultCount() string {
	if s.Faults == injectsNone {
		return "–"
	}
	return count(s.injected)
}
