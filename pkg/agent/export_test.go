package agent

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

// Header is the first line of a journal.
const Header = header

// Scan reads a journal: how many records there are, and how much of it is whole.
func Scan(data []byte) (records, whole int, err error) {
	all, whole, err := scan(data)
	return len(all), whole, err
}

// Entries are what a journal's bytes come to.
func Entries(data []byte) ([]*Entry, error) {
	records, _, err := scan(data)
	if err != nil {
		return nil, err
	}
	return add(records)
}

// Line is a record with this JSON as it would be written.
func Line(text string) []byte { return sealed([]byte(text)) }

// RetryAfter reads the header in seconds.
var RetryAfter = retryAfter

// Backoff is how long to wait after the nth try.
var Backoff = backoff

// HTTP is what an agent sends with.
func HTTP() *http.Client { return newClient("").http }

// Break makes the agent's journal one that can't be written.
func Break(a *Agent) { _ = a.journal.file.Close() }

// Note journals another budget for the nth entry.
func Note(j *Journal, n int, b Budget) error { return j.note(j.Entries()[n], record{Budget: &b}) }

// Died lets the agent die when the attempt of a step is in the journal, and nobody knows whether it was sent.
func Died(t *testing.T, a *Agent, step string) {
	t.Helper()
	steps, err := ParseSteps([]byte(step))
	if err != nil {
		t.Fatal(err)
	}
	plan, err := a.plan(steps)
	if err != nil {
		t.Fatal(err)
	}
	e, err := a.begin(plan[0].intention)
	if err == nil {
		err = a.journal.note(e, record{Attempt: 1})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// NewCommand puts a command into its form.
var NewCommand = newCommand

// MeanTheSame tells whether two JSON texts do, by another reader, which keeps numbers as they are spelled.
func MeanTheSame(a, b string) bool {
	var values [2]any
	for i, text := range []string{a, b} {
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.UseNumber()
		if decoder.Decode(&values[i]) != nil {
			return false
		}
	}
	return reflect.DeepEqual(values[0], values[1])
}
