package scenarios

import (
	"net/http"
	"time"

	"github.com/einmal/einmal/e2e/faults"
	"github.com/einmal/einmal/e2e/harness"
	"github.com/einmal/einmal/pkg/idempotency"
)

var expiredKeyNeverReruns = Scenario{
	Name: "expired_key_never_reruns",
	Promise: "A key never runs again: not when its answer is dropped, not when it is forgotten and tells its own age, not at a replica that keeps keys for longer. " +
		"Where a key tells no age, its event still has its one ticket.",
	Injects: true,
	run: func(s *Stage) int {
		keeping := s.keeping() // as long as anybody would: a release of before, or one whose settings were not changed yet
		lossy := s.HTTPProxy(keeping)
		anonymous, event := s.NewTicket(), ticket{Project: "ops", Title: "Disk full", SourceEventID: "disk-7@2026-05-06"}
		key, plain := idempotency.NewID("", time.Now().Add(-2*time.Hour))[1:], s.NewKey() // the first is a UUIDv7
		lossy.Next(faults.LoseAnswer)
		s.Create(lossy.URL(), key, anonymous.JSON())
		first := s.Create(keeping.URL(), plain, event.JSON())
		s.Executed("a ticket of an event", first)
		operation := asAnswer(lossy.Lost()[0]).Header.Get("Operation-Id")

		forgetful := s.keeping("EINMAL_RESPONSE_RETENTION=1s", "EINMAL_TOMBSTONE_RETENTION=5s")
		s.Await("the answers are dropped", func() bool { return s.Count("SELECT count(*) FROM operations WHERE response_body IS NOT NULL") == 0 })
		for _, replica := range []*harness.Service{forgetful, keeping} {
			late := s.Create(replica.URL(), key, anonymous.JSON())
			s.Problem("the key of a tombstone", late, http.StatusGone, "idempotency-key-expired")
			s.Check(late.Text("operation_id") == operation && late.Text("operation_state") == "succeeded" && late.Text("effect") == "applied", "the tombstone tells %v", late)
			s.Problem("another command under it", s.Create(replica.URL(), key, s.NewTicket().JSON()), http.StatusUnprocessableEntity, "idempotency-key-reused")
		}
		told := s.OperationOf(forgetful.URL(), key)
		s.Check(told.Status == http.StatusOK && told.Text("id") == operation && told.Text("response_expired_at") != "", "the operation is told as %v", told)

		s.Await("the keys are forgotten", func() bool { return s.Count("SELECT count(*) FROM operations") == 0 })
		for _, replica := range []*harness.Service{forgetful, keeping} {
			s.Problem("a key that tells its age", s.Create(replica.URL(), key, anonymous.JSON()), http.StatusGone, "idempotency-key-expired")
			s.Problem("the question for it", s.OperationOf(replica.URL(), key), http.StatusGone, "idempotency-key-expired")
		}
		again := s.Create(keeping.URL(), plain, event.JSON())
		s.Check(again.Status == http.StatusOK && again.Text("disposition") == "existing" && again.Text("id") == first.Text("id"), "the event under its forgotten key got %v", again)
		s.Notef("the tombstone told how it had ended; when it was gone the key's own time did the rest, and the event's uniqueness where there was none")
		return 2
	},
}

// keeping starts a replica that looks for what is past its retention all the time.
func (s *Stage) keeping(retention ...string) *harness.Service {
	service, err := s.lab.Serve(s.ctx, harness.Settings{Role: "tickets", DatabaseURL: s.db.URL, Env: append([]string{"EINMAL_PURGE_EVERY=50ms"}, retention...)})
	s.must(err)
	s.services = append(s.services, service)
	return service
}
