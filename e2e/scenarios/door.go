package scenarios

import (
	"github.com/einmal/einmal/e2e/faults"
	"github.com/einmal/einmal/e2e/harness"
	"github.com/einmal/einmal/e2e/record"
)

// ClosedDoor closes a door in front of a target: a sender that is frozen there has not sent its first byte.
func (s *Stage) ClosedDoor(target *Outside) *faults.ClosedDoor {
	door, err := faults.NewClosedDoor(target.Address())
	if err != nil {
		s.Skipf("%v", err)
	}
	door.Record(record.From(s.ctx))
	s.closers = append(s.closers, door.Close)
	return door
}

// goOn lets a sender that was frozen at the door go on, with its connection made, and waits until whatever it sends has arrived.
func (s *Stage) goOn(sender *harness.Service, door *faults.ClosedDoor) {
	door.Open()
	s.Await("the paused sender's connection is made", func() bool { return door.Came() > 0 })
	s.must(sender.Thaw())
	s.must(sender.Terminate()) // it ends its call, notes what it saw, and closes its connections
	s.Await("whatever it sent has arrived", func() bool { return door.Left() == door.Came() })
}
