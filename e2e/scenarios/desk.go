package scenarios

import "github.com/einmal/einmal/services/simulator"

// Desk is a ticket desk: the outside world of scenarios about tickets.
type Desk struct{ *Outside }

// The kinds of calls to a desk.
const (
	send   = "send"
	lookUp = "lookup"
	shut   = "close"
)

// always is a number of times that no scenario comes to.
const always = 1_000_000

// Desk starts the desk.
func (s *Stage) Desk() *Desk {
	s.desk = &Desk{s.outside("desk")}
	return s.desk
}

// NextSend arms a fault for the next send.
func (d *Desk) NextSend(when simulator.Moment, action simulator.Action) {
	d.Arm(simulator.Misfortune{Operation: send, When: when, Action: action})
}

// NextSendAnswered arms this answer, in place of the desk's own, for the next sends.
func (d *Desk) NextSendAnswered(when simulator.Moment, status int, times int64) {
	d.Arm(simulator.Misfortune{Operation: send, When: when, Action: simulator.Status, Status: status, Times: times})
}

// AwaitEffect waits until there is an effect under the key.
func (d *Desk) AwaitEffect(effectKey string) {
	d.stage.Await("the desk has the ticket", func() bool { return len(d.Effects(effectKey)) > 0 })
}

// sends is how many sends arrived, by effect key.
func (d *Desk) sends() map[string]int {
	n := map[string]int{}
	for _, call := range d.calls() {
		if call.Kind == send {
			n[call.EffectKey]++
		}
	}
	return n
}
