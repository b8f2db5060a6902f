package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// folder is where the patches are, seen from the root of the repository.
const folder = "e2e/mutants"

// mutant is one way to break the code.
type mutant struct {
	name   string // of the file, without .patch
	rule   string // what is broken, in one sentence
	killer killer
	patch  string // path of the file
}

// load reads the mutants of these names, or all, in the order of their names.
func load(names []string) ([]mutant, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.patch"))
	if err != nil {
		return nil, err
	}
	var all []mutant
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".patch")
		if len(names) > 0 && !slices.Contains(names, name) {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read mutant: %w", err)
		}
		m, err := parse(string(text))
		if err != nil {
			return nil, fmt.Errorf("read mutant %s: %w", name, err)
		}
		m.name = name
		if m.patch, err = filepath.Abs(file); err != nil {
			return nil, fmt.Errorf("read mutant %s: %w", name, err)
		}
		all = append(all, m)
	}
	for _, name := range names {
		if !slices.ContainsFunc(all, func(m mutant) bool { return m.name == name }) {
			return nil, fmt.Errorf("no mutant is called %q; -list says which there are", name)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("there is no patch in %s; run this from the root of the repository", folder)
	}
	return all, nil
}

// parse reads the comment lines before the diff: the rule, then the killer.
//
//	# The fingerprint is ignored: another command under a used key is answered with a replay.
//	# Killed-by: ./pkg/idempotency TestContract/.*/conflict/another_command_under_a_used_key
func parse(text string) (m mutant, err error) {
	var rule []string
	for line := range strings.Lines(text) {
		comment, ok := strings.CutPrefix(strings.TrimSpace(line), "# ")
		if !ok {
			break
		}
		if spec, ok := strings.CutPrefix(comment, "Killed-by: "); ok {
			if m.killer != (killer{}) {
				return mutant{}, errors.New("it names two killers")
			}
			if m.killer, err = parseKiller(spec); err != nil {
				return mutant{}, err
			}
			continue
		}
		rule = append(rule, comment)
	}
	m.rule = strings.Join(rule, " ")
	switch {
	case m.rule == "":
		return mutant{}, errors.New(`no line "# …" says which rule it breaks`)
	case m.killer == killer{}:
		return mutant{}, errors.New(`no line "# Killed-by: …" says what must notice`)
	}
	return m, nil
}
