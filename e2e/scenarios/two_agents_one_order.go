package scenarios

import (
	"net/http"
	"sync"

	"github.com/einmal/einmal/e2e/harness"
)

var twoAgentsOneOrder = Scenario{
	Name:    "two_agents_one_order",
	Promise: "Two agents who pay one order at the same time, each with a key of its own, charge the customer once; the other is told who does.",
	run: func(s *Stage) int {
		t := s.Till(patient)
		replicas := []*harness.Service{t.Replica(), t.Replica()}
		const rounds = 50
		for range rounds {
			o := t.NewOrder(replicas[0])
			won, lost := t.race(replicas, t.Pays(o), t.Pays(o))
			t.Problem("the other agent", lost, http.StatusConflict, "order-busy")
			t.Succeeds(replicas[0], won)
		}
		t.Notef("%d rounds", rounds)
		return rounds
	},
}

// race sends two acts at the same time, of which exactly one must be accepted, and returns that and the answer to the other.
func (t *Till) race(replicas []*harness.Service, acts ...*Act) (won *Act, lost harness.Answer) {
	answers := t.together(replicas, acts)
	for i, answer := range answers {
		if answer.Status != http.StatusAccepted {
			lost = answer
			continue
		}
		t.Check(won == nil, "both were accepted: %v and %v", answers[0], answers[1])
		won = acts[i]
		t.Accepted(won, answer)
	}
	t.Check(won != nil, "none was accepted: %v and %v", answers[0], answers[1])
	return won, lost
}

// together sends acts at the same time, at the replicas in turn.
func (t *Till) together(replicas []*harness.Service, acts []*Act) []harness.Answer {
	answers := make([]harness.Answer, len(acts))
	start := make(chan struct{})
	var all sync.WaitGroup
	for i, a := range acts {
		all.Go(func() {
			<-start
			answers[i] = t.Ask(replicas[i%len(replicas)], a)
		})
	}
	close(start)
	all.Wait()
	return answers
}
