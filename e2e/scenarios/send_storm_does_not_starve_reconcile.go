package scenarios

import (
	"time"

	"github.com/einmal/einmal/services/simulator"
)

var sendStormDoesNotStarveReconcile = Scenario{
	Name:    "send_storm_does_not_starve_reconcile",
	Promise: "While a slow desk has a long queue of sends, what is unknown is asked about at once, not after them.",
	Injects: true,
	run: func(s *Stage) int {
		return s.EachAbility(everyAbility, patient, (*Part).storm)
	},
}

// storm has a long queue for a slow desk, loses some answers in the middle, and looks whether they are cleared up before the queue is.
func (p *Part) storm() (effects int) {
	const (
		storm = 160                    // ten times what is sent at once
		slow  = 250 * time.Millisecond // so it lasts for ten times this
		lost  = 4
		left  = 3 * 16 // sends still queued when all is cleared up: three of the ten rounds
	)
	p.Queue(storm)
	p.desk.Arm(simulator.Misfortune{Operation: send, When: simulator.Before, Action: simulator.Delay, DelayMS: slow.Milliseconds(), Times: always})
	p.desk.Arm(simulator.Misfortune{Operation: send, When: simulator.After, Action: simulator.Reset, Times: lost})
	p.Replica(p.desk.URL())

	ambiguous := `FROM effects e WHERE EXISTS (SELECT 1 FROM attempts a WHERE a.operation_id = e.operation_id AND a.kind = 'send' AND a.outcome = 'ambiguous')`
	before := p.Count("SELECT count(*) " + ambiguous)
	p.Await("the answers are lost", func() bool { return p.Count("SELECT count(*) "+ambiguous) >= before+lost })
	p.Await("what is unknown is cleared up", func() bool {
		return p.Count("SELECT count(*) "+ambiguous+" AND e.state <> 'succeeded' AND e.review_id = ''") == 0
	})
	queued := p.Count("SELECT count(*) FROM effects WHERE state = 'queued'")
	p.Check(queued >= left, "%d sends were queued when the last of %d unknown effects was cleared up, want at least %d", queued, lost, left)
	p.Notef("%d lost answers were cleared up with %d sends still queued", lost, queued)

	p.desk.Disarm()
	p.AwaitDown("the storm is over", 0, p.openEffects)
	return storm
}
