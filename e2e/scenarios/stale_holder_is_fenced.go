package scenarios

import (
	"github.com/einmal/einmal/e2e/faults"
	"github.com/einmal/einmal/e2e/harness"
)

var staleHolderIsFenced = Scenario{
	Name:    "stale_holder_is_fenced",
	Promise: "A sender paused past its lease, until others have brought its release out and a newer one, changes nothing when it goes on.",
	Injects: true,
	run: func(s *Stage) int {
		return s.EachClusterKeys(sooner, usual, func(y *Yard) int {
			sender, release := y.pauseAtConnect()
			other := y.Replica()
			y.Succeeds(other, release.of)
			newer := y.Done(other, y.Plans())
			release.goOn(sender)
			y.Succeeds(other, release.of)
			y.Live(other, newer)
			y.Notef("%d of 1 late sends arrived", y.cluster.Calls(send, release.of.EffectKey)-1)
			return 2
		})
	},
}

// sooner is brisk, for senders that are paused: a connection is tried again after one second, when the pause should be over.
var sooner = Pace{Timeout: brisk.Timeout * 3 / 5, Lease: brisk.Lease * 3 / 5, Reconcile: brisk.Reconcile, KeyWindow: brisk.KeyWindow}

// paused is a release whose sender was frozen with its connection not yet made.
type paused struct {
	of   *Release
	yard *Yard
	door *faults.ClosedDoor
}

// pauseAtConnect freezes a sender that is about to send a release.
func (y *Yard) pauseAtConnect() (sender *harness.Service, p *paused) {
	door, err := faults.NewClosedDoor(y.cluster.Address())
	if err != nil {
		y.Skipf("%v", err)
	}
	y.closers = append(y.closers, door.Close)
	sender = y.ReplicaTo(door.URL())
	r := y.Begin(sender, y.Plans())
	y.Is(sender, r, "running")
	y.Freeze(sender)
	return sender, &paused{of: r, yard: y, door: door}
}

// goOn lets the sender go on, with its connection made, and waits until whatever it sends has arrived.
func (p *paused) goOn(sender *harness.Service) {
	p.door.Open()
	p.yard.Await("the paused sender's connection is made", func() bool { return p.door.Came() > 0 })
	p.yard.must(sender.Thaw())
	p.yard.must(sender.Terminate()) // it ends its call, notes what it saw, and closes its connections
	p.yard.Await("whatever it sent has arrived", func() bool { return p.door.Left() == p.door.Came() })
}
