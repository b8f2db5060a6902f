package scenarios

import (
	"net/http"

	"github.com/einmal/einmal/e2e/faults"
	agents "github.com/einmal/einmal/pkg/agent"
)

var conflictStopsTheAgent = Scenario{
	Name:    "conflict_stops_the_agent",
	Promise: "An agent whose key names another command stops and asks a person; it neither takes that command's answer for its own nor chooses another key.",
	Injects: true,
	run: func(s *Stage) int {
		service := s.Serve("")
		return s.EachWay(service, func(e *Errand) int {
			opens := e.opens("open")
			e.proxy.Next(faults.HoldRequest)
			first := e.Start(opens)
			e.AwaitHeld()
			key := e.Entry().Key
			other := e.Create(service.URL(), key, ticket{Project: "ops", Title: "somebody else's, under the agent's key"}.JSON())
			e.Check(other.Status == http.StatusCreated, "the other command: got %v, want 201", other)
			if e.lossy {
				e.KillAgent(first) // its conflict is lost, and the next one finds an operation under its key
				// A question, which is asked again, then the conflict. Every second answer would be that of every attempt, and then nobody can know.
				e.proxy.Next(faults.LoseAnswer, 0, faults.LoseAnswer, 0, 0)
			}
			e.proxy.Deliver()
			if !e.lossy {
				e.Ends("the agent", e.Result(first), 4, agents.Conflict)
			}
			for range 2 {
				e.Ends("the next agent", e.Do(opens, e.opens("further")), 4, agents.Conflict)
			}
			attempts := len(e.Entry().Attempts())
			e.Check(attempts == 1 || e.lossy && attempts <= 3, "%d attempts were made at a conflict", attempts)
			e.OneTicket("of the other command", e.Entry())
			return 1
		})
	},
}
