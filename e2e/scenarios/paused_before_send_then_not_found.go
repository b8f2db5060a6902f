package scenarios

import (
	"time"

	"github.com/einmal/einmal/e2e/faults"
	"github.com/einmal/einmal/e2e/harness"
	"github.com/einmal/einmal/e2e/record"
)

var pausedBeforeSendThenNotFound = Scenario{
	Name:    "paused_before_send_then_not_found",
	Promise: "A sender paused before its first byte, until others have found nothing and moved on, adds no second effect when it goes on.",
	Injects: true,
	run: func(s *Stage) int {
		sooner := brisk // a connection is tried again after one second: the pause should be over by then
		sooner.Timeout, sooner.Lease = 300*time.Millisecond, 600*time.Millisecond
		return s.EachAbility(everyAbility, sooner, (*Part).pauseAtConnect)
	},
}

// pauseAtConnect freezes a sender in connect, lets another replica take over, and thaws it with its connection made.
func (p *Part) pauseAtConnect() int {
	door, err := faults.NewClosedDoor(p.desk.Address())
	if err != nil {
		p.Skipf("%v", err)
	}
	door.Record(record.From(p.ctx))
	p.closers = append(p.closers, door.Close)
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
	door.Open()
	p.Await("the paused sender's connection is made", func() bool { return door.Came() > 0 })
	p.must(sender.Thaw())
	p.must(sender.Terminate()) // it ends its call, notes what it saw, and closes its connections
	p.Await("whatever it sent has arrived", func() bool { return door.Left() == door.Came() })
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
