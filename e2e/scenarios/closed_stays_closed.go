package scenarios

import (
	"fmt"
	"net/http"

	"github.com/einmal/einmal/e2e/faults"
	"github.com/einmal/einmal/e2e/harness"
)

var closedStaysClosed = Scenario{
	Name:    "closed_stays_closed",
	Promise: "A ticket that a person has closed is opened by nobody who has not seen that: no late retry, no alert, no repeated report.",
	Injects: true,
	run: func(s *Stage) int {
		service := s.Serve("")
		base, lossy := service.URL(), s.HTTPProxy(service)

		fires := func(status string) harness.Answer { // byte for byte as Alertmanager says it
			return s.Do(harness.Call{Base: base, Method: http.MethodPost, Path: alertmanagerHook, Body: fmt.Sprintf(
				`{"version":"4","alerts":[{"status":%q,"fingerprint":"4b3fd2a1c0e98765","startsAt":"2026-01-02T03:04:05.678Z","labels":{"alertname":"DiskFull","project":"ops"}}]}`, status)})
		}
		s.Check(fires("firing").Is("created", 1.0), "the alert made no ticket")
		id := s.Text("SELECT id FROM tickets")

		progress, closing := s.NewKey(), s.NewKey()
		first := s.SetStatus(base, id, progress, "in_progress", 0)
		s.set("work begins", first, "in_progress", 2, true)
		lossy.Next(faults.LoseAnswer)
		s.SetStatus(lossy.URL(), id, closing, "closed", 2)
		s.Kill(service)
		s.must(service.Start(s.ctx))
		s.set("the retry of closing it", s.SetStatus(base, id, closing, "closed", 2), "closed", 3, true)
		closedAt := s.Ticket(base, id).Text("closed_at")

		s.Replayed("a late retry of an earlier decision", s.SetStatus(base, id, progress, "in_progress", 0), first)
		for _, status := range []string{"open", "in_progress", "resolved"} {
			s.Problem("who has seen no version and wants it "+status, s.SetStatus(base, id, s.NewKey(), status, 0), http.StatusConflict, "ticket-closed")
		}
		s.Problem("who has seen it open", s.SetStatus(base, id, s.NewKey(), "open", 2), http.StatusConflict, "version-mismatch")
		s.Problem("who would resolve it", s.SetStatus(base, id, s.NewKey(), "resolved", 3), http.StatusConflict, "ticket-closed")
		for _, status := range []string{"firing", "resolved", "resolved", "firing"} {
			answer := fires(status)
			s.Check(answer.Status == http.StatusOK && answer.Is("created", 0.0), "the alert, %s, got %v", status, answer)
		}
		report := ticket{Project: "ops", Title: "Disk full", SourceEventID: "4b3fd2a1c0e98765@2026-01-02T03:04:05.678Z"}
		s.existing("another report of the event", s.Create(base, s.NewKey(), report.JSON()), id, false)
		s.Check(s.Comment(base, id, s.NewKey(), "It was the log.").Status == http.StatusCreated, "a comment was refused")
		s.is("after all that", base, id, "closed", 3)
		s.Check(s.Ticket(base, id).Text("closed_at") == closedAt, "the time at which it was closed has changed")

		s.set("a person who has seen it", s.SetStatus(base, id, s.NewKey(), "open", 3), "open", 4, true)
		s.Check(s.Ticket(base, id).Text("closed_at") == "", "it is open, and says when it was closed")
		s.Notef("late retries, an alert and a report left it closed; a command with its version opened it")
		return 1
	},
}
