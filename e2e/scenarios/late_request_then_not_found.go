package scenarios

import (
	"net/http"

	"github.com/einmal/einmal/e2e/faults"
	"github.com/einmal/einmal/e2e/harness"
)

var lateRequestThenNotFound = Scenario{
	Name:    "late_request_then_not_found",
	Promise: "A request that arrives after the desk was asked, and had nothing, makes no second effect, and not finding it fails nothing.",
	Injects: true,
	run: func(s *Stage) int {
		return s.EachAbility(everyAbility, brisk, func(p *Part) int {
			road, replica, m := p.sendLate()
			if p.canResend() {
				p.Succeeds(replica, m) // by a second send
				late := p.deliver(road)
				m.least = 2
				switch p.name {
				case byKey.name:
					p.Check(late.Status == http.StatusCreated && late.Header.Get("Idempotent-Replayed") == "true", "the late send got %v, want a replay of the second", late)
				default:
					p.Check(late.Status == http.StatusConflict && late.Text("code") == "closed", "the late send got %v, want it refused by the floor", late)
				}
				p.Notef("the second send made the ticket, the late one got %d", late.Status)
				return p.Succeeds(replica, m)
			}
			m.least, m.most = 1, 1
			p.InReview(replica, m, 0)
			late := p.deliver(road)
			p.Check(late.Status == http.StatusCreated, "the late send got %v, want it to make the ticket", late)
			if !p.canAsk() {
				p.Notef("a person was asked, and then the ticket was made")
				return p.InReview(replica, m, 1)
			}
			p.Reconcile(replica, m)
			p.AwaitState(replica, m, "succeeded")
			p.Notef("a person was asked, then the ticket was made, and asking once more found it")
			return p.Succeeds(replica, m)
		})
	},
}

// sendLate creates a ticket whose first send stands on the road to the desk.
func (p *Part) sendLate() (*faults.HTTPProxy, *harness.Service, *Mirror) {
	p.endReplicas() // which would send it by another road
	road := p.HTTPProxy(p.desk.Service)
	road.Next(faults.HoldRequest)
	replica := p.Replica(road.URL())
	m := p.Mirror(replica)
	p.Await("the send is on its way", func() bool { return road.Held() == 1 })
	return road, replica, m
}

// deliver lets the late send arrive, and returns what it was answered.
func (s *Stage) deliver(road *faults.HTTPProxy) harness.Answer {
	before := len(road.Lost())
	road.Deliver()
	lost := road.Lost()
	s.Check(len(lost) == before+1, "the late send got no answer")
	return asAnswer(lost[before])
}
