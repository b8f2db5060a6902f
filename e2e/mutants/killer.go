package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// killer is what must turn red: tests of one package, or a scenario on one database.
type killer struct {
	pkg, pattern       string // as go test and its -run take them
	scenario, database string // as einmal scenarios takes them
}

// parseKiller reads "./pkg/x TestY/.*/a_sentence" or "scenario NAME [--database postgres]".
func parseKiller(spec string) (killer, error) {
	words := strings.Fields(spec)
	switch {
	case len(words) == 2 && words[0] == "scenario":
		return killer{scenario: words[1], database: "sqlite"}, nil
	case len(words) == 4 && words[0] == "scenario" && words[2] == "--database":
		return killer{scenario: words[1], database: words[3]}, nil
	case len(words) == 2 && strings.HasPrefix(words[0], "."):
		return killer{pkg: words[0], pattern: words[1]}, nil
	}
	return killer{}, fmt.Errorf(`killer %q is neither "./PACKAGE TESTS" nor "scenario NAME [--database postgres]"`, spec)
}

func (k killer) String() string {
	switch {
	case k.pkg != "":
		return k.pkg + " " + k.pattern
	case k.database == "sqlite":
		return "scenario " + k.scenario
	}
	return "scenario " + k.scenario + " --database " + k.database
}

// target is the package to build: the one whose tests they are, or the program that the scenario is about.
func (k killer) target() string {
	if k.pkg != "" {
		return k.pkg
	}
	return program
}

// run says whether the killer is red, and what it has said. It returns an error if it is neither red nor green: if it was not found,
// was skipped, did not end, or if something else failed.
func (k killer) run(ctx context.Context, t *tree, binary string) (red bool, said string, err error) {
	cmd := exec.Command(binary, "scenarios", "--json", "--database", k.database, k.scenario)
	judge := k.judgeScenario
	if k.pkg != "" {
		cmd = exec.Command(binary, "-test.v=test2json", "-test.run="+k.pattern)
		cmd.Dir = filepath.Join(t.root, k.pkg) // where tests find their testdata
		judge = k.judgeTests
	}
	stdout, stderr, failed, err := t.execute(ctx, cmd)
	if err == nil && k.pkg != "" {
		stdout, err = t.test2json(ctx, stdout)
	}
	if err == nil {
		red, said, err = judge(stdout)
	}
	if err == nil && failed && !red {
		err = errors.New("something else failed than what it names")
	}
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, tail(stdout, stderr))
	}
	return red, tail([]byte(said)), err
}

// judgeTests looks in what go test -json prints for the tests that the whole pattern names; those that they are in don't count.
func (k killer) judgeTests(events []byte) (red bool, said string, err error) {
	pattern, err := compile(k.pattern)
	if err != nil {
		return false, "", err
	}
	ended := map[string]int{} // named tests, by how they ended
	for line := range bytes.Lines(events) {
		var event struct{ Action, Test, Output string }
		if err := json.Unmarshal(line, &event); err != nil {
			return false, "", fmt.Errorf("read test events: %w", err)
		}
		if event.Test != "" && pattern.names(event.Test) {
			ended[event.Action]++
			said += event.Output
		}
	}
	switch {
	case ended["fail"] > 0:
		return true, said, nil
	case ended["skip"] > 0:
		return false, said, errors.New("a test that it names was skipped")
	case ended["pass"] == 0:
		return false, said, errors.New("no test that it names was run")
	}
	return false, said, nil
}

// judgeScenario looks in what einmal scenarios --json prints.
func (k killer) judgeScenario(output []byte) (red bool, said string, err error) {
	var results struct {
		Scenarios []struct {
			Name   string
			Passed bool
			Detail string
		}
	}
	if err := json.Unmarshal(output, &results); err != nil {
		return false, "", fmt.Errorf("read results: %w", err)
	}
	for _, s := range results.Scenarios {
		if s.Name == k.scenario {
			return !s.Passed, s.Detail, nil
		}
	}
	return false, "", errors.New("the scenario was not played")
}
