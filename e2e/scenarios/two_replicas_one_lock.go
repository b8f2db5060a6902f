package scenarios

import (
	"net/http"
	"sync"

	"github.com/einmal/einmal/e2e/harness"
)

var twoReplicasOneLock = Scenario{
	Name:    "two_replicas_one_lock",
	Promise: "Agents who deploy to one environment at the same time, at two replicas, with keys of their own, never have two rollouts at once.",
	run: func(s *Stage) int {
		y := s.Yard(patient, instant)
		replicas := []*harness.Service{y.Replica(), y.Replica()}
		const rounds = 200
		rollouts := 0
		for range rounds {
			won := y.storm(replicas, []*Release{y.Plans(), y.Plans(), y.Plans(), y.Plans()})
			y.Check(len(won) > 0, "nobody has got the lock")
			for _, r := range won {
				y.Is(replicas[0], r, "succeeded")
			}
			rollouts += len(won)
		}
		refused := y.Count("SELECT count(*) FROM attempts WHERE outcome <> 'accepted' AND outcome <> 'confirmed'")
		y.Check(refused == 0, "the cluster had to refuse %d sends: two were on their way at once", refused)
		y.Notef("%d rounds, %d rollouts", rounds, rollouts)
		return rollouts
	},
}

// storm sends releases at the same time, at the replicas in turn. Each must be accepted, or told that another holds the environment.
func (y *Yard) storm(replicas []*harness.Service, all []*Release) (won []*Release) {
	answers := make([]harness.Answer, len(all))
	start := make(chan struct{})
	var sent sync.WaitGroup
	for i, r := range all {
		sent.Go(func() {
			<-start
			answers[i] = y.Ask(replicas[i%len(replicas)], r)
		})
	}
	close(start)
	sent.Wait()
	for i, answer := range answers {
		if answer.Status == http.StatusAccepted {
			y.Accepted(all[i], answer)
			won = append(won, all[i])
			continue
		}
		y.Problem("who came later", answer, http.StatusConflict, "environment-locked")
	}
	return won
}
