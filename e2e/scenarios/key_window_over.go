package scenarios

import (
	"net/http"
	"time"

	"github.com/einmal/einmal/services/simulator"
)

var keyWindowOver = Scenario{
	Name:    "key_window_over",
	Promise: "Once the desk may have forgotten a key nothing is sent under it any more: what can't be found is a person's to decide.",
	Injects: true,
	run: func(s *Stage) int {
		pace := brisk
		pace.KeyWindow = 2 * time.Second
		return s.EachAbility([]ability{byKey}, pace, func(p *Part) int {
			// The desk shows nothing of what it has done, so that a service which sent again would make a second ticket.
			forgetful := p.can
			forgetful.KeyWindowMS, forgetful.LagMS = pace.KeyWindow.Milliseconds(), time.Hour.Milliseconds()
			p.desk.Can(forgetful)
			return p.deadUntilForgotten() + p.turnedAwayUntilForgotten()
		})
	},
}

// deadUntilForgotten kills a process after its effect, and restarts it when the key is forgotten.
func (p *Part) deadUntilForgotten() (effects int) {
	replica := p.Replica(p.desk.URL())
	p.desk.NextSend(simulator.After, simulator.Hang)
	m := p.Mirror(replica)
	m.least, m.most = 1, 1
	p.desk.AwaitEffect(m.EffectKey)
	p.Kill(replica)
	since := time.Now()
	p.Await("the desk has forgotten the key", func() bool { return time.Since(since) > p.Pace.KeyWindow })
	p.Restart(replica)
	effects = p.InReview(replica, m, 1)
	p.Notef("restarted when the key was forgotten, nothing was sent")
	return effects
}

// turnedAwayUntilForgotten loses the first send, and turns the others away for longer than the key is remembered.
func (p *Part) turnedAwayUntilForgotten() (effects int) {
	replica := p.Replica(p.desk.URL())
	p.desk.NextSend(simulator.Before, simulator.Hang)
	p.desk.NextSendAnswered(simulator.Before, http.StatusTooManyRequests, always)
	since := time.Now()
	m := p.Mirror(replica)
	p.desk.AwaitFired(3) // one above
	effects = p.InReview(replica, m, 0)
	p.Check(time.Since(since) > p.Pace.KeyWindow-p.Pace.Timeout, "a person was asked before the key was forgotten")
	sends := p.desk.Calls(send, m.EffectKey)
	m.least, m.most = sends, sends
	p.Notef("turned away %d times until the key was forgotten", sends-1)
	return effects
}
