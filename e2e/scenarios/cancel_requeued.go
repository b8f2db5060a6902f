package scenarios

import (
	"net/http"

	"github.com/einmal/einmal/e2e/harness"
	"github.com/einmal/einmal/services/simulator"
)

var cancelRequeued = Scenario{
	Name:    "cancel_requeued",
	Promise: "What has certainly not been sent is withdrawn at once; what may still arrive is closed at the desk first, or is not withdrawn.",
	Injects: true,
	run: func(s *Stage) int {
		return s.EachAbility(everyAbility, brisk, func(p *Part) int {
			p.cancelNotSent()
			switch p.name {
			case byKey.name:
				return p.cancelInDoubt()
			case byClose.name:
				return p.cancelByClosing()
			}
			return p.cancelWhileRunning()
		})
	},
}

// cancelNotSent withdraws what the desk has turned away for the moment.
func (p *Part) cancelNotSent() {
	replica := p.Replica(p.desk.URL())
	p.desk.NextSendAnswered(simulator.Before, http.StatusTooManyRequests, always) // come back in a second
	m := p.Mirror(replica)
	p.desk.AwaitFired(1)
	p.AwaitState(replica, m, "queued")
	var canceled harness.Answer
	p.Await("it is withdrawn between two sends", func() bool { // while one is under way it may happen
		canceled = p.Cancel(replica, m)
		return canceled.Text("code") != "operation-running"
	})
	p.desk.Disarm()
	sends := p.desk.Calls(send, m.EffectKey)
	m.least, m.most = sends, sends
	p.Check(canceled.Status == http.StatusOK && canceled.Text("state") == "canceled", "withdrawing what was not sent: got %v, want 200 canceled", canceled)
	p.Canceled(replica, m)
	p.Problem("withdrawing it again", p.Cancel(replica, m), http.StatusConflict, "operation-final")
}

// cancelInDoubt tries to withdraw what was certainly not sent again, while its first send may still arrive.
func (p *Part) cancelInDoubt() (effects int) {
	p.desk.NextSendAnswered(simulator.Before, http.StatusTooManyRequests, always)
	road, replica, m := p.sendLate()
	p.Await("the second send is turned away", func() bool {
		return p.Count("SELECT count(*) FROM attempts WHERE operation_id = $1 AND kind = 'send' AND outcome = 'not_sent'", m.Operation) > 0
	})
	p.Problem("withdrawing what may still arrive", p.Cancel(replica, m), http.StatusConflict, "operation-running")
	p.desk.Disarm()
	p.deliver(road)
	p.Notef("what was in doubt was not withdrawn, and then arrived")
	return p.Succeeds(replica, m)
}

// cancelByClosing withdraws what is on its way: the desk refuses it when it arrives.
func (p *Part) cancelByClosing() (effects int) {
	road, replica, m := p.sendLate()
	asked := p.Cancel(replica, m)
	p.Check(asked.Status == http.StatusAccepted, "withdrawing what can be closed: got %v, want 202", asked)
	p.Canceled(replica, m)
	late := p.deliver(road)
	p.Check(late.Status == http.StatusConflict && late.Text("code") == "closed", "the late send got %v, want it refused by the floor", late)
	m.least, m.most = 1, 1
	p.Canceled(replica, m)
	p.Notef("what was on its way was closed at the desk, and refused when it arrived")
	return 0
}

// cancelWhileRunning tries to withdraw what is on its way to a desk that can't close.
func (p *Part) cancelWhileRunning() (effects int) {
	p.Pace = patient
	road, replica, m := p.sendLate()
	p.Problem("withdrawing what is on its way", p.Cancel(replica, m), http.StatusConflict, "operation-running")
	p.deliver(road)
	m.least, m.most = 1, 1
	p.Notef("what was on its way was not withdrawn, and then arrived")
	return p.Succeeds(replica, m)
}
