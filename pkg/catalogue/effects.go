package catalogue

import (
	"errors"
	"fmt"
	"time"
)

// CheckEffects returns an error that names every operation type of which a target is to bring out the effects and for which no entry
// says what that risks, until when it is worth it, and who decides what no machine can; or nil. A service calls it, by making its
// outbox, before it listens.
func CheckEffects(target string, types []string) error {
	if len(types) == 0 {
		return fmt.Errorf("check effects against the catalogue: target %s says of no operation type that it has its effects", target)
	}
	var errs []error
	for _, operation := range types {
		e, known := Lookup(operation)
		switch {
		case !known:
			errs = append(errs, fmt.Errorf("target %s has effects of %q, which is in no catalogue entry", target, operation))
		case len(e.Effects) == 0:
			errs = append(errs, fmt.Errorf("target %s has effects of %q, whose entry says that it has none", target, operation))
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("check effects against the catalogue: %w", errors.Join(errs...))
}

// Terms are who is asked what no machine can decide, within what time, and who after that.
type Terms struct {
	Owner      string
	Due        time.Duration
	Escalation string
}

// TermsOf are those of a review about an operation. Of what is nobody's operation nothing is held up while it is looked into: a working
// day.
func TermsOf(operation string) Terms {
	e, _ := Lookup(operation)
	if e.ReviewOwner == "" {
		return Terms{Owner: byOperator, Due: 8 * time.Hour, Escalation: "an operator of the account"}
	}
	return Terms{Owner: e.ReviewOwner, Due: time.Duration(e.ReviewDueSeconds) * time.Second, Escalation: e.Escalation}
}
