package report

import "github.com/einmal/einmal/e2e/record"

// Steps are how many steps a recording has, and how many of them are in the diagram, folded or not, or said to be left out.
func Steps(r record.Recording) (told, drawn, left int) {
	steps := tell(r).steps
	for _, s := range choose(fold(steps)) {
		drawn += s.times
		left += s.omitted
	}
	return len(steps), drawn, left
}

// MemberOf is memberOf.
var MemberOf = memberOf
