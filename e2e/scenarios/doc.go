// Package scenarios holds the failure scenarios, each in the file of its name.
//
// A scenario reads like a test. It is given a [Stage] with an empty database, starts services on it, breaks something, looks at the answers and
// returns how many effects there must be in the end; the first thing that is not as promised ends it. What must hold after every scenario is
// checked by [Scenario.Play] and can't be forgotten.
//
// Where effects outside are concerned, the stage has a [Desk], which can be told to fail and keeps what really happened, and the scenario is played in
// parts ([Part]), one for each ability that a desk may have: what must become of an effect that nobody has heard of depends on it.
package scenarios
