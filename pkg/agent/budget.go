package agent

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Budget bounds what an intention, or a whole run, may take. What is spent is counted in the journal, so a restart renews nothing.
type Budget struct {
	Attempts           int    `json:"attempts,omitzero"`             // requests that may have the effect
	DeadlineSeconds    int64  `json:"deadline_seconds,omitzero"`     // from the entry in the journal, so that queueing counts
	LongestWaitSeconds int64  `json:"longest_wait_seconds,omitzero"` // before any one request
	Cost               *int64 `json:"cost,omitzero"`                 // without one there is no limit
}

// intentionBudget is for a step that says nothing else. Five attempts with their pauses outlast a restart of a service; a quarter of an hour is
// more than a rollout takes, and less than a person minds waiting; a minute is what a service asks for where a person has to act first.
var intentionBudget = Budget{Attempts: 5, DeadlineSeconds: 15 * 60, LongestWaitSeconds: 60}

// runBudget is for a run of which nothing else is said: a working day and a night, and more attempts than a workflow has steps.
var runBudget = Budget{Attempts: 100, DeadlineSeconds: 24 * 60 * 60, LongestWaitSeconds: 60 * 60}

// or fills in what a budget does not say.
func (b Budget) or(other Budget) Budget {
	if b.Attempts == 0 {
		b.Attempts = other.Attempts
	}
	if b.DeadlineSeconds == 0 {
		b.DeadlineSeconds = other.DeadlineSeconds
	}
	if b.LongestWaitSeconds == 0 {
		b.LongestWaitSeconds = other.LongestWaitSeconds
	}
	if b.Cost == nil {
		b.Cost = other.Cost
	}
	return b
}

// given checks the text that a budget was read from: a zero, which would be taken for nothing, was meant to say something.
func (b Budget) given(text jsontext.Value) error {
	var members map[string]jsontext.Value
	if err := json.Unmarshal(text, &members); err != nil {
		return err
	}
	for name, value := range map[string]int64{"attempts": int64(b.Attempts), "deadline_seconds": b.DeadlineSeconds, "longest_wait_seconds": b.LongestWaitSeconds} {
		if _, said := members[name]; said && value == 0 {
			return fmt.Errorf("/budget/%s: it is 1 or more; leave it out where there is nothing to say", name)
		}
	}
	if cost, said := members["cost"]; said && cost.Kind() == 'n' {
		return errors.New("/budget/cost is null; leave it out where there is no limit")
	}
	return nil
}

func (b Budget) equal(other Budget) bool {
	same := (b.Cost == nil) == (other.Cost == nil) && (b.Cost == nil || *b.Cost == *other.Cost)
	b.Cost, other.Cost = nil, nil
	return same && b == other
}

// longestDeadline is a year, in seconds: what is longer is a slip.
const longestDeadline = 366 * 24 * 60 * 60

// violations are what is wrong with a budget.
func (b Budget) violations(pointer string) (wrong []string) {
	if b.Attempts < 0 || b.DeadlineSeconds < 0 || b.LongestWaitSeconds < 0 || b.Cost != nil && *b.Cost < 0 {
		wrong = append(wrong, pointer+": nothing in it is negative")
	}
	if b.DeadlineSeconds > longestDeadline || b.LongestWaitSeconds > longestDeadline {
		wrong = append(wrong, pointer+": no time in it is longer than a year")
	}
	return wrong
}

// spent is what was taken of a budget.
type spent struct {
	attempts int
	cost     int64
	since    time.Time
}

// spentBy adds up entries. An effect costs once, and not if it was refused.
func spentBy(entries ...*Entry) (s spent) {
	for _, e := range entries {
		attempts := len(e.Attempts())
		s.attempts += attempts
		if attempts > 0 && e.End.Outcome != Refused {
			s.cost = sum(s.cost, e.Cost)
		}
		if s.since.IsZero() || e.At.Before(s.since) {
			s.since = e.At
		}
	}
	return s
}

// sum adds costs, up to the largest number: what is more is more than any budget.
func sum(a, b int64) int64 { return a + min(b, math.MaxInt64-a) }

// attempt says what another attempt lacks. cost is what it would add; what adds nothing is not short of it, even where the budget was lowered since.
func (b Budget) attempt(of string, s spent, cost int64) *Shortage {
	switch {
	case s.attempts >= b.Attempts:
		return &Shortage{Of: of, Member: "attempts", Least: int64(s.attempts) + 1, why: fmt.Sprintf("%d attempts of %d were made", s.attempts, b.Attempts)}
	case cost > 0 && b.Cost != nil && cost > *b.Cost-s.cost:
		return &Shortage{Of: of, Member: "cost", Least: sum(s.cost, cost), why: fmt.Sprintf("it costs %d, and %d of %d are spent", cost, s.cost, *b.Cost)}
	}
	return nil
}

// wait says what such a wait lacks.
func (b Budget) wait(of string, s spent, wait time.Duration) *Shortage {
	longest, left := time.Duration(b.LongestWaitSeconds)*time.Second, time.Until(b.deadline(s))
	due := fmt.Sprintf("the next request is due in %v", wait.Round(time.Second))
	deadline := Shortage{Of: of, Member: "deadline_seconds", Least: wholeSeconds(time.Since(s.since) + wait), Since: s.since}
	switch {
	case wait > longest:
		return &Shortage{Of: of, Member: "longest_wait_seconds", Least: wholeSeconds(wait), why: fmt.Sprintf("%s, and the longest wait is %v", due, longest)}
	case left <= 0:
		deadline.why = "its deadline was " + b.deadline(s).Format(time.RFC3339)
		return &deadline
	case wait > left:
		deadline.why = fmt.Sprintf("%s, and the deadline is in %v", due, left.Round(time.Second))
		return &deadline
	}
	return nil
}

func wholeSeconds(d time.Duration) int64 { return int64(math.Ceil(d.Seconds())) }

func (b Budget) deadline(s spent) time.Time {
	return s.since.Add(time.Duration(b.DeadlineSeconds) * time.Second)
}
