package scenarios

import (
	"net/http"
	"sync"

	"github.com/einmal/einmal/e2e/faults"
	"github.com/einmal/einmal/e2e/harness"
)

var commentRetriedOnce = Scenario{
	Name:    "comment_retried_once",
	Promise: "A comment whose answers are lost, or whose service is killed, is there once and counted once, however often it is sent.",
	Injects: true,
	run: func(s *Stage) int {
		replicas := []*harness.Service{s.Serve(""), s.Serve("")}
		lossy := s.HTTPProxy(replicas[0])
		id := s.made(replicas[0].URL())

		key := s.NewKey()
		lossy.Next(faults.LoseAnswer, faults.LoseAnswer, faults.LoseAnswer)
		for range 3 {
			answer := s.Comment(lossy.URL(), id, key, "Cleaning up.")
			s.Check(answer.Err != nil, "the answer was not lost: %v", answer)
		}
		stored := asAnswer(lossy.Lost()[0])
		s.Check(stored.Status == http.StatusCreated && stored.Outcome() == "executed", "the first lost answer is %v, want 201 executed", stored)
		s.Replayed("the fourth attempt", s.Comment(lossy.URL(), id, key, "Cleaning up."), stored)
		s.Replayed("an attempt at another replica", s.Comment(replicas[1].URL(), id, key, "Cleaning up."), stored)
		s.comments(replicas[0], id, 1)

		late := s.NewKey() // the first copy is still on its way when the second has been answered
		lossy.Next(faults.HoldRequest)
		var held sync.WaitGroup
		held.Go(func() { s.Comment(lossy.URL(), id, late, "Half of it is done.") })
		s.Await("the first copy is held", func() bool { return lossy.Held() == 1 })
		second := s.Comment(replicas[1].URL(), id, late, "Half of it is done.")
		s.Check(second.Outcome() == "executed", "the second copy got %v", second)
		lossy.Deliver()
		held.Wait()
		s.Check(asAnswer(lossy.Lost()[3]).Same(second), "the first copy, late, got %v, want %v", asAnswer(lossy.Lost()[3]), second)
		s.comments(replicas[0], id, 2)

		const kills = 10
		for range kills {
			s.commentThroughKill(replicas, id)
		}
		s.comments(replicas[0], id, 2+kills)
		s.Notef("a comment with three lost answers, one that came twice and %d whose service was killed: %d comments, counted %d", kills, 2+kills, 2+kills)
		return 1
	},
}

// commentThroughKill kills the service at a random moment of a comment, and sends it again.
func (s *Stage) commentThroughKill(replicas []*harness.Service, id string) {
	key := s.NewKey()
	var sent sync.WaitGroup
	sent.Go(func() { s.Comment(replicas[0].URL(), id, key, "And again.") })
	s.Moment()
	s.Kill(replicas[0])
	sent.Wait()
	var answer harness.Answer
	s.Await("the comment is answered", func() bool {
		answer = s.Comment(replicas[1].URL(), id, key, "And again.")
		return final(answer)
	})
	s.Check(answer.Status == http.StatusCreated, "a comment through a kill got %v, want 201", answer)
	s.must(replicas[0].Start(s.ctx))
}

// comments ends the scenario unless a ticket has so many comments: as rows, as a list and as it counts them.
func (s *Stage) comments(service *harness.Service, id string, n int) {
	rows := s.Count("SELECT count(*) FROM comments WHERE ticket_id = $1", id)
	list := s.Do(harness.Call{Base: service.URL(), Method: http.MethodGet, Path: "/v1/tickets/" + id + "/comments?limit=200"})
	ticket := s.Ticket(service.URL(), id)
	s.Check(rows == n && countItems(list) == n && ticket.Is("comment_count", float64(n)), "%d comments, %d listed, the ticket is %v; want %d", rows, countItems(list), ticket, n)
}
