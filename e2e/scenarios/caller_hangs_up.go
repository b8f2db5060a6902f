package scenarios

import (
	"net/http"

	"github.com/einmal/einmal/e2e/harness"
)

var callerHangsUp = Scenario{
	Name:    "caller_hangs_up",
	Promise: "Work goes on when its caller hangs up: the result is stored although nobody listens, and a retry gets it.",
	Injects: true,
	run: func(s *Stage) int {
		gate := s.Gate()
		service := s.Serve(gate.URL)

		key, body := s.NewKey(), s.NewTicket().JSON()
		gate.Hold()
		sent := s.Send(service.URL(), key, body)
		gate.AwaitHeld()
		sent.HangUp()
		s.Struck()
		gate.Release()
		var operation harness.Answer
		s.Await("the operation that nobody waits for has succeeded", func() bool {
			operation = s.OperationOf(service.URL(), key)
			return operation.Status == http.StatusOK && operation.Text("state") == "succeeded"
		})
		stored := s.Create(service.URL(), key, body)
		s.Check(stored.Outcome() == "replayed" && stored.Header.Get("Operation-Id") == operation.Text("id"), "the retry got %v, want a replay", stored)

		const more = 20
		for range more {
			s.hangUpAtRandom(service)
		}
		s.Notef("one caller hung up with its commit on its way, %d at random moments; all got their answer by asking again", more)
		return 1 + more
	},
}

// hangUpAtRandom hangs up somewhere between sending a request and reading its answer, and asks again.
func (s *Stage) hangUpAtRandom(service *harness.Service) {
	key, body := s.NewKey(), s.NewTicket().JSON()
	sent := s.Send(service.URL(), key, body)
	s.Moment()
	sent.HangUp()
	s.Struck()
	s.Settled("the retry of a caller that hung up", s.Insist(service.URL(), key, body))
	s.Check(s.TicketsOf(key) == 1, "%d tickets, want 1", s.TicketsOf(key))
}
