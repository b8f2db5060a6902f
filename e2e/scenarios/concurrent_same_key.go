package scenarios

import (
	"sync"

	"github.com/einmal/einmal/e2e/harness"
)

// callers race for one key: far more than a service has database connections.
const callers = 64

var concurrentSameKey = Scenario{
	Name:    "concurrent_same_key",
	Promise: "64 callers of two replicas race with one key: one executes, all get the same answer, none gets an error.",
	Injects: true,
	run: func(s *Stage) int {
		gate := s.Gate()
		replicas := []*harness.Service{s.Serve(gate.URL), s.Serve(gate.URL)}

		const rounds = 4
		for range rounds - 1 {
			s.race(replicas, func() {})
		}
		// Fast work is over before most callers have arrived. In the last round the winner's commit is slow, so that all of them meet it.
		gate.Hold()
		s.race(replicas, func() {
			gate.AwaitHeld()
			gate.Release()
		})
		s.Notef("%d rounds of %d callers, in each 1 execution, 1 distinct answer, 0 errors", rounds, callers)
		return rounds
	},
}

// race lets all callers create one ticket with one key, at all replicas in turn, and looks at their final answers.
func (s *Stage) race(replicas []*harness.Service, meanwhile func()) {
	key, body := s.NewKey(), s.NewTicket().JSON()
	answers := make([]harness.Answer, callers)
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() {
			<-start
			answers[i] = s.Insist(replicas[i%len(replicas)].URL(), key, body)
		})
	}
	close(start)
	meanwhile()
	all.Wait()

	executed := 0
	for _, answer := range answers {
		s.Settled("a caller in the race", answer)
		s.Check(answer.Same(answers[0]), "two callers got different answers:\n  %v\n  %v", answer, answers[0])
		if answer.Outcome() == "executed" {
			executed++
		}
	}
	s.Check(executed == 1, "%d callers were told that they executed, want 1", executed)
	s.Check(s.TicketsOf(key) == 1, "%d tickets, want 1", s.TicketsOf(key))
}
