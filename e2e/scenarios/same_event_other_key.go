package scenarios

import (
	"net/http"
	"sync"

	"github.com/einmal/einmal/e2e/harness"
)

var sameEventOtherKey = Scenario{
	Name:    "same_event_other_key",
	Promise: "An event has one ticket a project, whoever reports it under whatever key; tickets without an event are never taken for one.",
	run: func(s *Stage) int {
		replicas := []*harness.Service{s.Serve(""), s.Serve("")}
		base := replicas[0].URL()
		event := ticket{Project: "ops", Title: "Disk full", SourceEventID: "4b3f@2026-01-02T03:04:05Z"}

		id := s.reportAtOnce(replicas, event)

		changed := event
		changed.Title = "Disk full, says the second monitor"
		existing := s.Create(base, s.NewKey(), changed.JSON())
		s.existing("the event with another title", existing, id, false)
		s.Check(existing.Text("title") == event.Title, "the ticket was changed by a repeated report: %v", existing)
		repeated := s.NewKey()
		existing = s.Create(base, repeated, event.JSON())
		s.existing("the event under another key", existing, id, true)
		s.Replayed("the same report again", s.Create(base, repeated, event.JSON()), existing)
		list := s.Do(harness.Call{Base: base, Method: http.MethodGet, Path: "/v1/tickets?project=ops&source_event_id=4b3f%402026-01-02T03:04:05Z"})
		s.Check(list.Status == http.StatusOK && countItems(list) == 1, "the list has %v, want one ticket of the event", list)

		elsewhere := event
		elsewhere.Project = "billing"
		inBilling := s.Create(base, s.NewKey(), elsewhere.JSON())
		s.created("the event in another project", inBilling)
		s.existing("the event in the first project once more", s.Create(base, s.NewKey(), event.JSON()), id, true)
		s.created("the event in another account", s.Do(harness.Call{
			Base: base, Method: http.MethodPost, Path: "/v1/tickets", Token: otherAccount, Key: s.NewKey(), Body: event.JSON(),
		}))

		for range 2 { // two incidents without an identity are two incidents, however alike
			s.created("a ticket without an event", s.Create(base, s.NewKey(), `{"project":"ops","title":"same title"}`))
		}
		s.Notef("seven reports of one event made one ticket; another project, another account and reports without an event made their own")
		return 5
	},
}

// reportAtOnce lets three monitors report one event at once, each with a key of its own, and returns the id of its ticket.
func (s *Stage) reportAtOnce(replicas []*harness.Service, event ticket) (id string) {
	const monitors = 3
	answers := make([]harness.Answer, monitors)
	keys := []string{s.NewKey(), s.NewKey(), s.NewKey()}
	var all sync.WaitGroup
	for i := range monitors {
		all.Go(func() { answers[i] = s.Insist(replicas[i%len(replicas)].URL(), keys[i], event.JSON()) })
	}
	all.Wait()
	created := 0
	for _, answer := range answers {
		if answer.Status == http.StatusCreated {
			created++
			id = answer.Text("id")
		}
	}
	s.Check(created == 1, "%d of %d monitors created a ticket, want 1: %v", created, monitors, answers)
	for _, answer := range answers {
		if answer.Status != http.StatusCreated {
			s.existing("a monitor that came second", answer, id, true)
		}
	}
	return id
}

func (s *Stage) created(what string, a harness.Answer) {
	s.Executed(what, a)
	s.Check(a.Text("disposition") == "created", "%s: got %v, want disposition created", what, a)
}

func (s *Stage) existing(what string, a harness.Answer, id string, matches bool) {
	s.Check(a.Err == nil && a.Status == http.StatusOK && a.Text("disposition") == "existing" && a.Text("id") == id && a.Is("content_matches", matches),
		"%s: got %v, want 200 with the existing ticket %s and content_matches %v", what, a, id, matches)
}
