package scenarios

import (
	"fmt"

	"github.com/einmal/einmal/services/simulator"
)

// Cluster is a cluster: the outside world of scenarios about deployments.
type Cluster struct{ *Outside }

// The kinds of calls to a cluster beside those that a desk knows, and the kinds of its effects.
const (
	stop    = "stop"
	rollout = "rollout"
)

// Cluster starts the cluster.
func (s *Stage) Cluster(settings ...string) *Cluster {
	s.cluster = &Cluster{s.outside("cluster", settings...)}
	return s.cluster
}

// Next arms a fault for the next call of a kind.
func (c *Cluster) Next(operation string, when simulator.Moment, action simulator.Action) {
	c.Arm(simulator.Misfortune{Operation: operation, When: when, Action: action})
}

// Rollouts are the rollouts that really happened, in their order.
func (c *Cluster) Rollouts() (rollouts []simulator.Effect) {
	for _, e := range c.Ledger() {
		if e.Kind == rollout {
			rollouts = append(rollouts, e)
		}
	}
	return rollouts
}

// AwaitRollout waits until there is a rollout under the key.
func (c *Cluster) AwaitRollout(effectKey string) {
	c.stage.Await("the cluster has begun the rollout", func() bool { return len(c.Effects(effectKey)) > 0 })
}

// checkCluster ends the scenario unless every operation is final or with a person, no two rollouts overlapped in an environment, no token went
// back, and what our rows call live is what was rolled out. What fsck finds by the ledger is not looked for again.
func (s *Stage) checkCluster() {
	if s.cluster == nil {
		return
	}
	open := s.openEffects()
	s.Check(open == 0, "%d operations are neither final nor with a person", open)
	ledger := s.cluster.Ledger()
	last := map[string]simulator.Effect{}
	for _, e := range ledger {
		place := e.Account + "/" + e.Environment
		before, found := last[place]
		switch {
		case e.Kind != rollout:
			continue
		case found && (before.EndedAt == nil || before.EndedAt.After(*e.StartedAt)):
			s.Failf("two rollouts overlap in %s: %s and %s", place, interval(before), interval(e))
		case found && e.Token <= before.Token:
			s.Failf("token %d was used in %s after token %d", e.Token, place, before.Token)
		}
		last[place] = e
	}
	s.checkRolledOut(ledger)
	live := s.Count("SELECT count(*) FROM releases")
	known := s.Count("SELECT count(*) FROM releases r JOIN deployments d ON d.account_id = r.account_id AND d.id = r.deployment_id AND d.reported_artifact = r.artifact")
	s.Check(live == known, "%d of %d live releases are what the cluster said runs", known, live)
	s.noteLedger(ledger)
}

// checkRolledOut ends the scenario unless what our rows call live was rolled out by the cluster.
func (s *Stage) checkRolledOut(ledger []simulator.Effect) {
	live, seen := 0, map[string]bool{}
	for _, e := range ledger {
		if of := e.Account + "/" + e.Environment + "/" + e.Digest; e.Kind == rollout && !seen[of] {
			seen[of] = true
			live += s.Count("SELECT count(*) FROM releases WHERE account_id = $1 AND environment = $2 AND artifact LIKE '%@' || $3", e.Account, e.Environment, e.Digest)
		}
	}
	s.Check(live == s.Count("SELECT count(*) FROM releases"), "%d releases are live, %d of them were rolled out by the cluster", s.Count("SELECT count(*) FROM releases"), live)
}

// interval says when a rollout went on, for messages.
func interval(e simulator.Effect) string {
	return fmt.Sprintf("%s of %s from %v to %v with token %d", e.Kind, e.Digest, e.StartedAt, e.EndedAt, e.Token)
}
