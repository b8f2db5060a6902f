package scenarios

import (
	"time"

	"github.com/einmal/einmal/services/simulator"
)

// ability is what a desk is declared to be able to do, and what it really does.
type ability struct {
	name string // in EINMAL_DESK_ABILITY
	can  simulator.Abilities
}

var (
	byKey    = ability{"key", simulator.Abilities{Keys: simulator.Honour, Lookup: true}}
	byClose  = ability{"close", simulator.Abilities{Keys: simulator.Ignore, Close: true}}
	byLookUp = ability{"lookup", simulator.Abilities{Keys: simulator.Ignore, Lookup: true}}
	byNone   = ability{"none", simulator.Abilities{Keys: simulator.Ignore}}

	// keyIgnored is a desk that breaks its promise. Only asking before sending again stands between a retry and a second effect.
	keyIgnored = ability{"key", simulator.Abilities{Keys: simulator.Ignore, Lookup: true}}

	everyAbility       = []ability{byKey, byClose, byLookUp, byNone}
	everyAbilityAndLie = []ability{byKey, keyIgnored, byClose, byLookUp, byNone}
)

// canAsk tells whether the desk can say what it has done.
func (a ability) canAsk() bool { return a.can.Lookup || a.can.Close }

// canResend tells whether a send of which nothing is found may be repeated.
func (a ability) canResend() bool { return a.name == byKey.name || a.name == byClose.name }

func (a ability) String() string {
	if a.name == byKey.name && a.can.Keys == simulator.Ignore {
		return "key, which the desk ignores"
	}
	return a.name
}

// Pace is how long services wait.
type Pace struct {
	Timeout   time.Duration // for an answer of the desk
	Lease     time.Duration // until an effect is taken from somebody who says nothing
	Reconcile time.Duration // until the desk is asked, and between looks for due effects
	KeyWindow time.Duration // for which the desk remembers a key
}

// brisk is for scenarios that wait for these times to pass. A desk that is not disturbed answers in milliseconds.
var brisk = Pace{Timeout: 500 * time.Millisecond, Lease: time.Second, Reconcile: 100 * time.Millisecond, KeyWindow: 24 * time.Hour}

// sooner is brisk, for senders that are paused in connect: a connection is tried again after one second, when the pause should be over.
var sooner = Pace{Timeout: brisk.Timeout * 3 / 5, Lease: brisk.Lease * 3 / 5, Reconcile: brisk.Reconcile, KeyWindow: brisk.KeyWindow}

// patient is for those that don't: a slow machine is not to be taken for a desk that says nothing.
var patient = Pace{Timeout: 5 * time.Second, Lease: 6 * time.Second, Reconcile: 100 * time.Millisecond, KeyWindow: 24 * time.Hour}
