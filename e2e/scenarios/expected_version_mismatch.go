package scenarios

import (
	"net/http"
	"sync"

	"github.com/einmal/einmal/e2e/harness"
)

var expectedVersionMismatch = Scenario{
	Name:    "expected_version_mismatch",
	Promise: "Of plans that were made for one version of an environment one comes out, whoever sends them; the others are told that it has changed.",
	run: func(s *Stage) int {
		y := s.Yard(patient, instant)
		replicas := []*harness.Service{y.Replica(), y.Replica()}
		const rounds = 10
		for range rounds {
			version := y.Prod(replicas[0]).Version
			y.oneOf(replicas, y.Plans(expecting(version)), y.Plans(expecting(version)), y.Plans(expecting(version)))
			late := y.Plans(expecting(version))
			refused := y.Ask(replicas[0], late)
			y.Problem("a plan that is too old", refused, http.StatusConflict, "environment-changed")
			y.Replayed("that plan once more", y.Ask(replicas[1], late), refused)
			y.Check(y.Prod(replicas[0]).Version == version+1, "the version is %d after %d and one deployment", y.Prod(replicas[0]).Version, version)
		}
		y.Notef("%d rounds", rounds)
		return rounds
	},
}

// oneOf sends plans at the same time, again while the environment is locked, until each is live or refused for good. One must be live.
func (y *Yard) oneOf(replicas []*harness.Service, plans ...*Release) {
	won := make([]bool, len(plans))
	answers := make([]harness.Answer, len(plans))
	var all sync.WaitGroup
	for i, r := range plans {
		all.Go(func() {
			answers[i], won[i] = y.persist(replicas[i%len(replicas)], r)
		})
	}
	all.Wait()
	n := 0
	for i, answer := range answers {
		if won[i] {
			n++
			continue
		}
		y.Problem("a plan that was too late", answer, http.StatusConflict, "environment-changed")
	}
	y.Check(n == 1, "%d of the plans came out, want 1: %v", n, answers)
}

// persist sends a plan again while its environment is locked, or it is under way, and reports whether it has come out.
func (y *Yard) persist(replica *harness.Service, r *Release) (answer harness.Answer, live bool) {
	for y.ctx.Err() == nil {
		answer = y.Ask(replica, r)
		switch {
		case answer.Status == http.StatusCreated:
			return answer, true
		case answer.Err == nil && answer.Status != http.StatusAccepted && answer.Status != http.StatusServiceUnavailable &&
			answer.Text("code") != "environment-locked" && answer.Text("code") != "operation-in-progress":
			return answer, false
		}
		y.Moment()
	}
	return answer, false
}
