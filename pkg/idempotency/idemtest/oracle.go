package idemtest

import (
	"time"

	"github.com/einmal/einmal/pkg/idempotency"
)

// behaviour is what apply does in an attempt, if it is run.
type behaviour string

const (
	succeeds     behaviour = "succeeds"
	accepts      behaviour = "accepts" // queued
	refusesNow   behaviour = "refuses now"
	refusesFinal behaviour = "refuses for ever"
	fails        behaviour = "fails"
	breaks       behaviour = "panics"
	dies         behaviour = "dies" // its connection, before COMMIT
)

// identity is what makes an operation one.
type identity struct {
	account string
	key     idempotency.Key
}

// fact is what is known of an operation.
type fact struct {
	command   int
	operation idempotency.Operation
	effects   int
}

// oracle says what an attempt must meet: the contract in a few lines, with nothing going on at the same time.
type oracle struct {
	retention time.Duration
	facts     map[identity]*fact
}

// meets is what an attempt finds, whatever it would do; empty when its key is free.
func (o *oracle) meets(id identity, command int, now time.Time) idempotency.Outcome {
	f := o.facts[id]
	switch {
	case f == nil:
		return ""
	case f.command != command:
		return idempotency.OutcomeConflict
	case !f.operation.State.Final():
		return idempotency.OutcomeInProgress
	case f.operation.ResponseExpiredAt != nil || now.Sub(*f.operation.CompletedAt) > o.retention:
		return idempotency.OutcomeExpired
	}
	return idempotency.OutcomeReplayed
}

// does is the outcome of an attempt whose key is free, empty for an error; and whether it takes the key, with how many effects.
func (b behaviour) does() (outcome idempotency.Outcome, takes bool, effects int) {
	switch b {
	case succeeds:
		return idempotency.OutcomeExecuted, true, 1
	case accepts:
		return idempotency.OutcomeAccepted, true, 1
	case refusesFinal:
		return idempotency.OutcomeRefused, true, 0
	case refusesNow:
		return idempotency.OutcomeRefused, false, 0
	}
	return "", false, 0
}
