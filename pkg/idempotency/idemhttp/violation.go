package idemhttp

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/einmal/einmal/pkg/problem"
)

// decoder collects violations. Only the first at a place counts: a member of the wrong type is not also too short.
type decoder struct {
	violations   []problem.Violation
	at           map[jsontext.Pointer]bool // the places of the violations
	pointerBytes int
}

func (d *decoder) problem(beside ...problem.Violation) error {
	all := slices.Concat(beside, d.violations)
	if len(all) == 0 {
		return nil
	}
	return problem.Invalid(all...)
}

// A body can be wrong in as many places as it has bytes, and each place can have a name as long as the body. Nobody repairs more
// than this at once, and neither the time to judge a body nor the answer to it may grow with the product.
const (
	maxViolations   = 100
	maxPointerBytes = 64 << 10 // of all of them; one alone may be longer
)

// full reports whether there is no room for another violation. What is wrong then is not told, but the command is wrong anyway.
func (d *decoder) full() bool {
	return len(d.violations) >= maxViolations || d.pointerBytes >= maxPointerBytes
}

func (d *decoder) violate(at jsontext.Pointer, format string, args ...any) {
	if d.full() || d.violated(at) {
		return
	}
	if d.at == nil {
		d.at = map[jsontext.Pointer]bool{}
	}
	d.violations = append(d.violations, problem.Violation{Pointer: string(at), Detail: fmt.Sprintf(format, args...)})
	d.at[at] = true
	d.pointerBytes += len(at)
}

func (d *decoder) violated(at jsontext.Pointer) bool { return d.at[at] }
