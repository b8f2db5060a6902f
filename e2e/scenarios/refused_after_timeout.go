package scenarios

import (
	"net/http"
	"slices"

	"github.com/einmal/einmal/services/simulator"
)

var refusedAfterTimeout = Scenario{
	Name:    "refused_after_timeout",
	Promise: "A refusal of the second send says nothing about the first, which may still arrive: nothing fails and nothing is withdrawn.",
	Injects: true,
	run: func(s *Stage) int {
		return s.EachAbility([]ability{byKey, byClose}, brisk, func(p *Part) int {
			p.desk.NextSendAnswered(simulator.Before, http.StatusTooManyRequests, always)
			road, replica, m := p.sendLate()
			m.least = 2          // the first, and one that is refused
			p.desk.AwaitFired(1) // the second send is refused, with the first on its way
			op := p.Operation(replica, m)
			p.Check(slices.Contains([]string{"queued", "running", "unknown"}, op.Text("state")), "after the refusal the mirror is %v, want it open", op)
			if p.name == byKey.name {
				p.Problem("withdrawing what may still arrive", p.Cancel(replica, m), http.StatusConflict, "operation-running")
				p.Check(p.Operation(replica, m).Text("effect") == "unknown", "a send may still arrive, and the mirror's effect is not unknown")
			}
			p.desk.Disarm()
			if p.name == byClose.name {
				m.least++ // the first comes below the floor, so only another one makes the ticket; a desk with keys shows the first when asked
			}
			late := p.deliver(road)
			effects := p.Succeeds(replica, m)
			p.Notef("the first send arrived after a refusal and got %d", late.Status)
			return effects
		})
	},
}
