package scenarios

import (
	"net/http"
	"sync"

	"github.com/einmal/einmal/e2e/harness"
)

var twoApproversDecideAtOnce = Scenario{
	Name:    "two_approvers_decide_at_once",
	Promise: "Of a yes and a no at the same time, at two replicas, one counts, the other is told so, and what happens is what that one says.",
	run: func(s *Stage) int {
		t := s.Till(patient)
		replicas := []*harness.Service{t.Replica(t.People()...), t.Replica(t.People()...)}
		const rounds = 15
		happened := 0
		for range rounds {
			a := t.Begin(replicas[0], t.Pays(t.PutOrder(replicas[0], large, "EUR")))
			approval := t.Approval(replicas[0], a.Operation)
			deciders, decisions, keys := [2]string{approver, boss}, [2]string{"approve", "reject"}, [2]string{t.NewKey(), t.NewKey()}
			var answers [2]harness.Answer
			start := make(chan struct{})
			var all sync.WaitGroup
			for i := range answers {
				all.Go(func() {
					<-start
					answers[i] = t.Decide(replicas[i], deciders[i], keys[i], approval, decisions[i])
				})
			}
			close(start)
			all.Wait()
			won := 0
			if answers[1].Status == http.StatusOK {
				won = 1
			}
			t.Check(answers[won].Status == http.StatusOK, "none of the two counts: %v, %v", answers[0], answers[1])
			t.Problem("the other decision", answers[1-won], http.StatusConflict, "approval-decided")
			again := t.Decide(replicas[won], deciders[1-won], keys[1-won], approval, decisions[1-won])
			t.Check(again.Outcome() == "replayed" && again.Same(answers[1-won]), "the other decision again: got %v, want the same", again)
			if won == 0 {
				happened++
				t.Succeeds(replicas[0], a)
			} else {
				t.Withdrawn(replicas[0], a, "approval-rejected")
			}
		}
		t.Notef("%d of %d were approved", happened, rounds)
		return happened
	},
}
