package scenarios

import (
	"net/http"

	"github.com/einmal/einmal/e2e/faults"
	"github.com/einmal/einmal/e2e/harness"
)

var uniquenessOutlivesTheKey = Scenario{
	Name:    "uniqueness_outlives_the_key",
	Promise: "When the answer under a key is kept no longer, the key is refused and never runs again, and its event still has its one ticket.",
	Injects: true,
	run: func(s *Stage) int {
		service, err := s.lab.Serve(s.ctx, harness.Settings{Role: "tickets", DatabaseURL: s.db.URL, Env: []string{"EINMAL_RESPONSE_RETENTION=1s"}})
		s.must(err)
		s.services = append(s.services, service)
		lossy := s.HTTPProxy(service)
		event := ticket{Project: "ops", Title: "Disk full", SourceEventID: "4b3fd2a1c0e98765@2026-01-02T03:04:05.678Z"}
		alert := func() harness.Answer {
			return s.Do(harness.Call{Base: service.URL(), Method: http.MethodPost, Path: alertmanagerHook, Body: `{"version":"4","alerts":[` +
				`{"status":"firing","fingerprint":"4b3fd2a1c0e98765","startsAt":"2026-01-02T03:04:05.678Z","labels":{"alertname":"DiskFull","project":"ops"}}]}`})
		}

		key := s.NewKey()
		lossy.Next(faults.LoseAnswer)
		s.Create(lossy.URL(), key, event.JSON())
		id := asAnswer(lossy.Lost()[0]).Text("id")
		s.Check(alert().Is("existing", 1.0), "the alert made another ticket")

		var late harness.Answer
		s.Await("the answer's retention has passed", func() bool {
			late = s.Create(service.URL(), key, event.JSON())
			return late.Status == http.StatusGone
		})
		s.Problem("the old key", late, http.StatusGone, "idempotency-key-expired")
		s.Check(late.Text("operation_state") == "succeeded" && late.Text("effect") == "applied" && late.Text("retry") == "never", "the old key got %v", late)
		s.Check(s.OperationOf(service.URL(), key).Text("state") == "succeeded", "the operation of the old key is not told any more")
		for _, status := range []string{"in_progress", "resolved", "closed"} {
			s.Check(s.SetStatus(service.URL(), id, s.NewKey(), status, 0).Status == http.StatusOK, "the status %s was refused", status)
			s.Check(s.reportedAgain(service, event) == id, "the event has another ticket once the first is %s", status)
			s.Await("the alert's answer has expired too", func() bool { return alert().Is("repeated", 1.0) })
		}
		s.Check(s.Create(service.URL(), key, event.JSON()).Status == http.StatusGone, "the old key ran again")
		s.is("after all that", service.URL(), id, "closed", 4)
		s.Notef("the key answers 410 and tells how it ended; the event is found under new keys, whatever its ticket's status")
		return 1
	},
}
