package scenarios

import (
	"net/http"
	"sync"

	"github.com/einmal/einmal/e2e/faults"
	"github.com/einmal/einmal/e2e/harness"
)

var statusIsAState = Scenario{
	Name:    "status_is_a_state",
	Promise: "A status is set to what is wanted: a late or repeated command never undoes what somebody decided since, and of those who decide by one version one gets through.",
	Injects: true,
	run: func(s *Stage) int {
		replicas := []*harness.Service{s.Serve(""), s.Serve("")}
		lossy := s.HTTPProxy(replicas[0])
		base, id := replicas[1].URL(), s.made(replicas[0].URL())

		progress := s.NewKey()
		lossy.Next(faults.LoseAnswer)
		s.SetStatus(lossy.URL(), id, progress, "in_progress", 0)
		s.set("a decision of somebody else", s.SetStatus(base, id, s.NewKey(), "resolved", 0), "resolved", 3, true)
		stored := asAnswer(lossy.Lost()[0])
		s.set("the lost answer", stored, "in_progress", 2, true)
		s.Replayed("the retry", s.SetStatus(lossy.URL(), id, progress, "in_progress", 0), stored)
		s.is("after the retry", base, id, "resolved", 3)
		s.set("the same wish of a third", s.SetStatus(base, id, s.NewKey(), "resolved", 0), "resolved", 3, false)

		reopen := s.NewKey() // the first copy arrives when the second was done and overruled
		lossy.Next(faults.HoldRequest)
		var held sync.WaitGroup
		held.Go(func() { s.SetStatus(lossy.URL(), id, reopen, "open", 3) })
		s.Await("the first copy is held", func() bool { return lossy.Held() == 1 })
		second := s.SetStatus(base, id, reopen, "open", 3)
		s.set("the second copy", second, "open", 4, true)
		s.set("a decision of somebody else", s.SetStatus(base, id, s.NewKey(), "resolved", 4), "resolved", 5, true)
		lossy.Deliver()
		held.Wait()
		s.Check(asAnswer(lossy.Lost()[1]).Same(second), "the first copy, late, got %v, want %v", asAnswer(lossy.Lost()[1]), second)
		s.is("after the late copy", base, id, "resolved", 5)
		s.Problem("who has not seen that", s.SetStatus(base, id, s.NewKey(), "open", 4), http.StatusConflict, "version-mismatch")

		const rounds = 10
		for range rounds {
			s.decideAtOnce(replicas)
		}
		s.Notef("late copies changed nothing; in %d rounds one of two who decided by one version got through", rounds)
		return 1 + rounds
	},
}

// decideAtOnce lets two decide by the same version at two replicas.
func (s *Stage) decideAtOnce(replicas []*harness.Service) {
	id := s.made(replicas[0].URL())
	wishes, keys := []string{"in_progress", "resolved"}, []string{s.NewKey(), s.NewKey()}
	answers := make([]harness.Answer, 2)
	var both sync.WaitGroup
	for i := range 2 {
		both.Go(func() {
			for answers[i] = s.SetStatus(replicas[i].URL(), id, keys[i], wishes[i], 1); !final(answers[i]); {
				answers[i] = s.SetStatus(replicas[i].URL(), id, keys[i], wishes[i], 1)
			}
		})
	}
	both.Wait()
	winner := 0
	if answers[1].Status == http.StatusOK {
		winner = 1
	}
	s.set("who came first", answers[winner], wishes[winner], 2, true)
	s.Problem("who came second", answers[1-winner], http.StatusConflict, "version-mismatch")
	s.is("after both", replicas[0].URL(), id, wishes[winner], 2)
	for i := range 2 {
		s.Replayed("a retry", s.SetStatus(replicas[1-i].URL(), id, keys[i], wishes[i], 1), answers[i])
	}
}
