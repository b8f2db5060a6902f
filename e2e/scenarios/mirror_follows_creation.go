package scenarios

import (
	"net/http"

	"github.com/einmal/einmal/e2e/faults"
	"github.com/einmal/einmal/services/simulator"
)

var mirrorFollowsCreation = Scenario{
	Name:    "mirror_follows_creation",
	Promise: "A new ticket is at the desk once, whoever made it and however often; what exists, a comment or a status is not sent there.",
	Injects: true,
	run: func(s *Stage) int {
		return s.EachAbility([]ability{byKey, byNone}, patient, func(p *Part) int {
			replica := p.Replica(p.desk.URL())
			lossy := p.HTTPProxy(replica)

			// A creation whose answer is lost, and that is repeated, is mirrored by the one operation that the first answer names.
			event := p.NewTicket()
			event.SourceEventID = p.NewKey()
			key := p.NewKey()
			lossy.Next(faults.LoseAnswer)
			p.Create(lossy.URL(), key, event.JSON())
			first := asAnswer(lossy.Lost()[0])
			m := p.mirrorOf(first)
			p.Replayed("the retry of a creation that is mirrored", p.Create(lossy.URL(), key, event.JSON()), first)
			effects := p.Succeeds(replica, m)
			m.least, m.most = 1, 1

			// What follows is about a ticket that exists.
			p.Check(p.reportedAgain(replica, event) == m.Ticket, "the event has another ticket")
			p.Check(p.Comment(replica.URL(), m.Ticket, p.NewKey(), "t").Status == http.StatusCreated, "a comment was refused")
			p.set("a status", p.SetStatus(replica.URL(), m.Ticket, p.NewKey(), "resolved", 0), "resolved", 2, true)

			// While the desk takes nothing, tickets are made all the same, and go there when it does.
			p.desk.NextSendAnswered(simulator.Before, http.StatusTooManyRequests, 1)
			waiting := p.Mirror(replica)
			p.set("a status of a ticket that is not yet mirrored", p.SetStatus(replica.URL(), waiting.Ticket, p.NewKey(), "closed", 0), "closed", 2, true)
			effects += p.Succeeds(replica, waiting)

			mirrors := p.Count("SELECT count(*) FROM operations WHERE type = 'ticket.mirror'")
			p.Check(mirrors == p.Count("SELECT count(*) FROM tickets"), "%d mirrors of %d tickets", mirrors, p.Count("SELECT count(*) FROM tickets"))
			return effects
		})
	},
}
