package scenarios

import (
	"net/http"

	"github.com/einmal/einmal/e2e/faults"
)

var lostRequest = Scenario{
	Name:    "lost_request",
	Promise: "A request that never arrived leaves nothing behind: its key is unknown, and sending it again executes it once.",
	Injects: true,
	run: func(s *Stage) int {
		service := s.Serve("")
		lossy := s.HTTPProxy(service)
		key, body := s.NewKey(), s.NewTicket().JSON()

		lossy.Next(faults.LoseRequest, faults.LoseRequest, faults.LoseRequest)
		for range 3 {
			answer := s.Create(lossy.URL(), key, body)
			s.Check(answer.Err != nil, "the request was not lost: %v", answer)
		}
		// To the caller this looks like a lost answer. Asking for the key tells the two apart.
		s.Problem("the operation of the key", s.OperationOf(service.URL(), key), http.StatusNotFound, "operation-not-found")
		s.Check(s.Count("SELECT count(*) FROM operations") == 0, "a request that never arrived left an operation")

		created := s.Create(lossy.URL(), key, body)
		s.Executed("the attempt that arrived", created)
		known := s.OperationOf(service.URL(), key)
		s.Check(known.Status == http.StatusOK && known.Text("state") == "succeeded" && known.Text("id") == created.Header.Get("Operation-Id"),
			"the operation of the key is %v, want the succeeded one", known)
		s.Notef("three requests were lost, the fourth executed")
		return 1
	},
}
