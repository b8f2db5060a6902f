package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// checkSettings refuses an EINMAL_ variable that no role knows: a misspelt time-out must not silently be the default.
// A variable of another role is fine, so that one environment can serve several roles.
func checkSettings(app *kong.Application, environ []string) error {
	known := settings(app.Node)
	for _, variable := range environ {
		name, _, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, "EINMAL_") || slices.Contains(known, name) {
			continue
		}
		nearest := slices.MinFunc(known, func(a, b string) int { return distance(name, a) - distance(name, b) })
		if distance(name, nearest) > maxSlips {
			return fmt.Errorf("unknown setting %s; einmal ROLE --help lists those that there are", name)
		}
		return fmt.Errorf("unknown setting %s; did you mean %s? (einmal ROLE --help lists them)", name, nearest)
	}
	return nil
}

// maxSlips is how far a misspelt name is from the one that was meant: a letter too many, two that are swapped. Three letters are another word.
const maxSlips = 2

// settings collects the variables of a role and those below it.
func settings(node *kong.Node) []string {
	var all []string
	for _, flag := range node.Flags {
		all = append(all, flag.Envs...)
	}
	for _, child := range node.Children {
		all = append(all, settings(child)...)
	}
	return all
}

// distance is the number of characters to insert, delete or replace between a and b (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
