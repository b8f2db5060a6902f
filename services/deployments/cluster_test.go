package deployments_test

import (
	"strings"
	"testing"
	"time"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/services/simulator"
	"github.com/einmal/einmal/services/simulator/simtest"
)

// cluster is a simulated cluster: the truth about what was rolled out.
type cluster struct{ simtest.Simulator }

// startCluster runs a simulator whose rollouts take so long, until the test ends.
func startCluster(t *testing.T, kind database.Kind, rolloutTime time.Duration) cluster {
	t.Helper()
	return cluster{simtest.Start(t, kind, func(c *simulator.Config) { c.RolloutTime = rolloutTime })}
}

// arm makes a fault strike the next call of a kind.
func (c cluster) arm(operation, when, action, more string) {
	c.T.Helper()
	c.Arm(`{"target":"cluster","operation":"` + operation + `","when":"` + when + `","action":"` + action + `","times":1` + more + `}`)
}

// ignoresKeys makes the cluster break its promise.
func (c cluster) ignoresKeys() {
	c.T.Helper()
	c.Abilities(`{"target":"cluster","keys":"ignore","lookup":true,"close":true}`)
}

// ledger is what really happened, of a kind.
func (c cluster) ledger(kind string) (of []simulator.Effect) {
	c.T.Helper()
	for _, e := range c.Ledger("cluster") {
		if e.Kind == kind {
			of = append(of, e)
		}
	}
	return of
}

// rolledOut holds the ledger to rollouts of images with these digits, in this order.
func (c cluster) rolledOut(digits ...string) {
	c.T.Helper()
	var got []string
	for _, e := range c.ledger("rollout") {
		got = append(got, e.Digest[len(e.Digest)-1:])
	}
	if strings.Join(got, " ") != strings.Join(digits, " ") {
		c.T.Errorf("the cluster has rolled out %q, want %q", got, digits)
	}
}

// oneAtATime holds the ledger to what must always be true: no two rollouts overlap in an environment, and no token goes back.
func (c cluster) oneAtATime() {
	c.T.Helper()
	last := map[string]simulator.Effect{}
	for _, e := range c.ledger("rollout") {
		place := e.Account + "/" + e.Environment
		before, found := last[place]
		if found && (before.EndedAt == nil || before.EndedAt.After(*e.StartedAt)) {
			c.T.Errorf("two rollouts overlap in %s: %+v, %+v", place, before, e)
		}
		if found && e.Token <= before.Token {
			c.T.Errorf("token %d comes after %d in %s", e.Token, before.Token, place)
		}
		last[place] = e
	}
}
