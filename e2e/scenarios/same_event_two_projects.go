package scenarios

import (
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/einmal/einmal/e2e/faults"
	"github.com/einmal/einmal/e2e/harness"
)

var sameEventTwoProjects = Scenario{
	Name:    "same_event_two_projects",
	Promise: "One event that two projects are told of has a ticket in each: neither is taken for the other, whatever is lost or comes at once.",
	Injects: true,
	run: func(s *Stage) int {
		replicas := []*harness.Service{s.Serve(""), s.Serve("")}
		lossy := s.HTTPProxy(replicas[0])
		const event = "mail-4711@example.org"
		inOps, inBilling := ticket{"ops", "Invoices are late", event}, ticket{"billing", "Invoices are late", event}

		ops := s.reportAtOnce(replicas, inOps)
		key := s.NewKey()
		lossy.Next(faults.LoseAnswer)
		s.Create(lossy.URL(), key, inBilling.JSON())
		stored := asAnswer(lossy.Lost()[0])
		s.created("the event in another project", stored)
		billing := stored.Text("id")
		s.Check(billing != ops, "both projects have the ticket %s", ops)
		s.Replayed("the retry", s.Create(lossy.URL(), key, inBilling.JSON()), stored)
		s.Problem("the same key for the other project", s.Create(lossy.URL(), key, inOps.JSON()), http.StatusUnprocessableEntity, "idempotency-key-reused")

		s.Check(s.reportedAgain(replicas[0], inOps) == ops, "ops got another ticket")
		s.Check(s.reportedAgain(replicas[1], inBilling) == billing, "billing got another ticket")
		s.set("billing closes its own", s.SetStatus(replicas[0].URL(), billing, s.NewKey(), "closed", 0), "closed", 2, true)
		s.is("and not the other", replicas[0].URL(), ops, "open", 1)
		s.Check(s.reportedAgain(replicas[1], inBilling) == billing, "billing got another ticket once its own was closed")

		for project, id := range map[string]string{"ops": ops, "billing": billing} {
			list := s.Do(harness.Call{Base: replicas[0].URL(), Method: http.MethodGet, Path: "/v1/tickets?project=" + project + "&source_event_id=" + url.QueryEscape(event)})
			var found struct{ Items []struct{ ID string } }
			s.Check(json.Unmarshal(list.Body, &found) == nil && len(found.Items) == 1 && found.Items[0].ID == id, "the list of %s is %v, want %s", project, list, id)
		}
		s.Notef("one event, a ticket in each of two projects; reports, retries and a status met their own only")
		return 2
	},
}

// reportedAgain reports an event under a key of its own, and returns the id of the ticket that it has.
func (s *Stage) reportedAgain(service *harness.Service, event ticket) (id string) {
	answer := s.Create(service.URL(), s.NewKey(), event.JSON())
	s.Check(answer.Status == http.StatusOK && answer.Text("disposition") == "existing" && answer.Text("project") == event.Project,
		"the event in %s once more: got %v, want its ticket", event.Project, answer)
	return answer.Text("id")
}
