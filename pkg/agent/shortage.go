package agent

import (
	"fmt"
	"strings"
	"time"
)

// Shortage is which budget did not allow what was to come next.
type Shortage struct {
	Of     string    `json:"of"`             // step or run
	Member string    `json:"member"`         // of the budget
	Least  int64     `json:"least"`          // what would have been enough of it
	Since  time.Time `json:"since,omitzero"` // from when a deadline runs

	why string
}

const (
	ofStep = "step"
	ofRun  = "run"
)

func (s *Shortage) Error() string {
	return fmt.Sprintf("the budget of the %s is spent: %s", s.Of, s.why)
}

// spareSeconds is added to a deadline that somebody is told to give, since it runs while they read: as long as a step has that says nothing else.
const spareSeconds = 15 * 60

// relief says how to give an entry, or its run, what it lacks. Done to the letter, it lets the next request go out.
func (e *Entry) relief() string {
	s := e.End.Shortage
	least := s.Least
	if s.Member == "deadline_seconds" {
		least = max(least, wholeSeconds(time.Since(s.Since))) + spareSeconds
	}
	if s.Of == ofStep {
		return fmt.Sprintf(`do the same step again with "budget": {%q: %d} or more in it`, s.Member, least)
	}
	return fmt.Sprintf("resume, or do the same steps again, with --run %s --%s %d or more", quoted(e.Run), strings.ReplaceAll(s.Member, "_", "-"), least)
}

// quoted is a name as a shell takes it: whoever named the run may have been a model, and what is advised is pasted.
func quoted(name string) string {
	if !strings.ContainsFunc(name, func(r rune) bool { return !strings.ContainsRune(unquoted, r) }) {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}

// unquoted are the characters that mean nothing to any shell.
const unquoted = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:/@%+,"
