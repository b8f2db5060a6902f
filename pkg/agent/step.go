package agent

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Step is what an agent is asked to do. It may have been written by a model, so it is read strictly, and names its target instead of saying where
// it is: no text can send a token somewhere else.
type Step struct {
	Step    string         `json:"step"`     // the workflow's stable name; without one the command is the name
	Target  string         `json:"target"`   // one of the agent's; without one the only or the unnamed one
	Method  string         `json:"method"`   // POST without one
	Path    string         `json:"path"`     // concrete
	Body    jsontext.Value `json:"body"`     // an object; {} without one
	Retry   Retry          `json:"retry"`    // same_operation without one
	RetryOf string         `json:"retry_of"` // a step of the same run that was refused, of which this is another try on purpose
	Cost    int64          `json:"cost"`     // of the effect, in whatever the budgets are counted in; it is counted once
	Budget  *Budget        `json:"budget"`
}

// ErrInvalid means that steps can't be done as they are. Nothing was sent.
var ErrInvalid = errors.New("invalid steps")

// ParseSteps reads steps: JSON objects one after the other (one, or JSON lines), or one array of them. It returns everything that is wrong with their
// form.
func ParseSteps(text []byte) ([]Step, error) {
	var steps []Step
	decoder := jsontext.NewDecoder(bytes.NewReader(text))
	for {
		value, err := decoder.ReadValue()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%w: step %d: %s; steps are JSON objects, such as %s", ErrInvalid, len(steps)+1, strings.TrimPrefix(err.Error(), "jsontext: "), aStep)
		}
		values := []jsontext.Value{value}
		if value.Kind() == '[' {
			if err := json.Unmarshal(value, &values); err != nil {
				return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
			}
		}
		for _, value := range values {
			step, err := parseStep(value)
			if err != nil {
				return nil, fmt.Errorf("%w: step %d: %w", ErrInvalid, len(steps)+1, err)
			}
			steps = append(steps, step)
		}
	}
	if len(steps) == 0 {
		return nil, fmt.Errorf("%w: there is none; give JSON objects with at least a path, such as %s", ErrInvalid, aStep)
	}
	return steps, nil
}

// aStep is one, for whoever has not seen any.
const aStep = `{"path": "/v1/tickets", "body": {}}`

// mostBytes bounds the text of one step: a service takes bodies up to 1 MiB.
const mostBytes = 2 << 20

func parseStep(value jsontext.Value) (s Step, err error) {
	if len(value) > mostBytes {
		return s, fmt.Errorf("it has %d bytes; %d are enough for any", len(value), mostBytes)
	}
	if value.Kind() != '{' {
		return s, errors.New("it is no JSON object; " + members)
	}
	var given map[string]jsontext.Value
	if err := json.Unmarshal(value, &given); err != nil {
		return s, err
	}
	for name, member := range given {
		if member.Kind() == 'n' || string(member) == `""` && name != "path" { // as a script writes it whose variable is not set
			return s, fmt.Errorf("/%s is %s; leave it out where there is nothing to say", name, member)
		}
	}
	err = json.Unmarshal(value, &s, json.RejectUnknownMembers(true))
	if wrong := (*json.SemanticError)(nil); errors.As(err, &wrong) {
		if errors.Is(err, json.ErrUnknownName) {
			return s, fmt.Errorf("%s is not known; %s", wrong.JSONPointer, members)
		}
		return s, fmt.Errorf("%s has another JSON type than it must have; %s", wrong.JSONPointer, members)
	}
	if err == nil && s.Budget != nil {
		err = s.Budget.given(given["budget"])
	}
	return s, err
}

// members are those of a step file, for whoever has to mend one.
const members = `a step has step, target, method, path, retry, retry_of (texts), body (an object), cost (a whole number), ` +
	`budget {attempts, deadline_seconds, longest_wait_seconds, cost} (whole numbers)`

// intention puts a step into the form in which it is journaled, except for its key, and says everything that is wrong with it.
func (s Step) intention(run string, targets map[string]Target) (in Intention, wrong []string) {
	if s.Method == "" {
		s.Method = "POST"
	}
	if s.Retry == "" {
		s.Retry = SameOperation
	}
	command, wrong := newCommand(s.Target, s.Method, s.Path, s.Body)
	target, known := targets[s.Target]
	switch {
	case !known && s.Target == "":
		wrong = append(wrong, "/target: it is missing; "+names(targets))
	case !known:
		wrong = append(wrong, fmt.Sprintf("/target: there is no %q; %s", s.Target, names(targets)))
	}
	if s.Step != "" && !isName(s.Step) || strings.HasPrefix(s.Step, commandPrefix) {
		wrong = append(wrong, fmt.Sprintf("/step: a name has 1 to %d visible ASCII characters and does not begin with %s", longestName, commandPrefix))
	}
	if allowed[s.Retry] == nil {
		wrong = append(wrong, fmt.Sprintf("/retry: %q is neither %s nor %s", s.Retry, SameOperation, Never))
	}
	if s.Cost < 0 {
		wrong = append(wrong, "/cost: it is not negative")
	}
	budget := intentionBudget
	if s.Budget != nil {
		wrong = append(wrong, s.Budget.violations("/budget")...)
		budget = s.Budget.or(budget)
	}
	if s.Step == "" && len(wrong) == 0 {
		s.Step = command.Name()
	}
	if s.RetryOf != "" && s.RetryOf == s.Step {
		wrong = append(wrong, "/retry_of: it names another step")
	}
	return Intention{
		Run: run, Step: s.Step, Command: command, URL: target.URL, Ability: target.Ability,
		Retry: s.Retry, RetryOf: s.RetryOf, Cost: s.Cost, Budget: budget,
	}, wrong
}

// longestName is what the header Agent-Run-Id may hold, and plenty for a step.
const longestName = 128

func isName(name string) bool {
	return name != "" && len(name) <= longestName && !strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' })
}

// names says which targets there are.
func names(targets map[string]Target) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(targets)) {
		if name == "" {
			all = append(all, "the one without a name (for steps that say no target)")
		} else {
			all = append(all, strconv.Quote(name))
		}
	}
	if len(all) == 0 {
		return "the agent was given none"
	}
	return "the agent was given " + strings.Join(all, ", ")
}
