package scenarios

import (
	"net/http"

	"github.com/einmal/einmal/e2e/faults"
	"github.com/einmal/einmal/e2e/harness"
)

var alertResolvesAndReturns = Scenario{
	Name:    "alert_resolves_and_returns",
	Promise: "An alert that is over and fires again is another event with another ticket, and no late news of the first one changes either.",
	Injects: true,
	run: func(s *Stage) int {
		service := s.Serve("")
		lossy := s.HTTPProxy(service)
		monitoring := s.Monitoring("alertname", lossy.URL())

		alert := newAlert("DiskFull", "db1")
		monitoring.Tell("it fires", alert)
		monitoring.AwaitEvents(1, 0)
		lossy.Next(faults.LoseAnswer)
		monitoring.Tell("it is over", over(alert))
		monitoring.AwaitEvents(1, 1)
		s.Await("an answer was lost", func() bool { return lossy.Fired() == 1 })

		again := newAlert("DiskFull", "db1")
		monitoring.Tell("it fires again", again)
		monitoring.AwaitEvents(2, 1)
		monitoring.AwaitTaken(2)
		s.Check(s.Count("SELECT count(*) FROM tickets WHERE status = 'open'") == 1, "the ticket of the second time is not open")

		late := monitoring.receivers[0].Notifications()
		for _, n := range late {
			answer := s.Do(harness.Call{Base: service.URL(), Method: http.MethodPost, Path: alertmanagerHook, Body: string(n.Body)})
			s.Check(answer.Status == http.StatusOK && answer.Is("created", 0.0) && answer.Is("resolved", 0.0), "a late copy of a notification got %v, want nothing done", answer)
		}
		events := monitoring.CheckEvents()
		s.Check(events == 2, "%d events were told of, want 2", events)
		s.Notef("two times, two tickets; %d late copies of notifications changed neither", len(late))
		return 2
	},
}
