package scenarios

import "github.com/einmal/einmal/e2e/harness"

var pausedBeforeSendThenNotFound = Scenario{
	Name:    "paused_before_send_then_not_found",
	Promise: "A sender paused before its first byte, until others have found nothing and moved on, adds no second effect when it goes on.",
	Injects: true,
	run: func(s *Stage) int {
		return s.EachAbility(everyAbility, sooner, (*Part).pauseAtConnect)
	},
}

// pauseAtConnect freezes a sender in connect, lets another replica take over, and thaws it with its connection made.
func (p *Part) pauseAtConnect() int {
	door := p.ClosedDoor(p.desk.Outside)
	sender := p.Replica(door.URL())
	m := p.Mirror(sender)
	p.AwaitState(sender, m, "running")
	p.Freeze(sender)

	other := p.Replica(p.desk.URL())
	if p.canResend() {
		p.Succeeds(other, m)
	} else {
		m.most = 1
		p.InReview(other, m, 0)
	}
	p.goOn(sender, door)
	return p.afterThePause(other, m)
}

// afterThePause looks at what the thawed sender has made of it. Its own clock tells it that the call is over; should the bytes leave all the same, they
// are a second send only where the desk tells copies apart.
func (p *Part) afterThePause(other *harness.Service, m *Mirror) (effects int) {
	if p.canResend() {
		p.Notef("%d of 1 late sends arrived", p.desk.Calls(send, m.EffectKey)-1)
		return p.Succeeds(other, m)
	}
	p.Notef("%d of 1 late sends arrived", p.desk.Calls(send, m.EffectKey))
	if p.settled(other, m).Text("state") == "succeeded" { // the late sender has heard of its effect
		return p.Succeeds(other, m)
	}
	return p.InReview(other, m, len(p.desk.Effects(m.EffectKey)))
}
