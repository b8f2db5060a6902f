package scenarios

import (
	"github.com/einmal/einmal/e2e/faults"
	"github.com/einmal/einmal/e2e/harness"
)

var lostResponse = Scenario{
	Name:    "lost_response",
	Promise: "A caller that lost the answer gets the very same bytes when it asks again, and nothing happens twice.",
	Injects: true,
	run: func(s *Stage) int {
		first, second := s.Serve(""), s.Serve("")
		lossy := s.HTTPProxy(first)
		key, body := s.NewKey(), s.NewTicket().JSON()

		lossy.Next(faults.LoseAnswer, faults.LoseAnswer)
		for range 2 {
			answer := s.Create(lossy.URL(), key, body)
			s.Check(answer.Err != nil, "the answer was not lost: %v", answer)
		}
		s.Check(s.TicketsOf(key) == 1, "%d tickets after two lost answers, want 1", s.TicketsOf(key))
		lost := asAnswer(lossy.Lost()[0])
		s.Executed("the lost answer", lost)
		s.Replayed("the second lost answer", asAnswer(lossy.Lost()[1]), lost)
		s.Replayed("the third attempt", s.Create(lossy.URL(), key, body), lost)
		s.Replayed("an attempt at another replica", s.Create(second.URL(), key, body), lost)

		s.resentByGateway(first, second)
		s.Notef("two answers were lost, every later attempt got the %d bytes of the first", len(lost.Body))
		return 2
	},
}

// resentByGateway lets a gateway send one request to two replicas at once, which no caller asked for.
func (s *Stage) resentByGateway(first, second *harness.Service) {
	gateway := s.HTTPProxy(first, second)
	key, body := s.NewKey(), s.NewTicket().JSON()
	gateway.Next(faults.Resend)
	passed := s.Create(gateway.URL(), key, body)
	stored := s.Insist(first.URL(), key, body)
	for _, copied := range []harness.Answer{passed, asAnswer(gateway.Lost()[0])} {
		s.Check(copied.Text("code") == "operation-in-progress" || copied.Same(stored), "a copy sent by a gateway got %v, want in progress or %v", copied, stored)
	}
	s.Check(s.TicketsOf(key) == 1, "%d tickets after a gateway sent a request twice, want 1", s.TicketsOf(key))
}

func asAnswer(a faults.Answer) harness.Answer {
	return harness.Answer{Status: a.Status, Header: a.Header, Body: a.Body}
}
