package scenarios

import "github.com/einmal/einmal/services/simulator"

var deskTimesOutUnknown = Scenario{
	Name:    "desk_times_out_unknown",
	Promise: "A desk that gives no answer in time makes the operation unknown, neither failed nor sent again before the desk was asked.",
	Injects: true,
	run: func(s *Stage) int {
		return s.EachAbility(everyAbilityAndLie, brisk, func(p *Part) int {
			replica := p.Replica(p.desk.URL())
			p.desk.NextSend(simulator.After, simulator.Hang)
			happened := p.Mirror(replica)
			p.desk.AwaitFired(1)
			p.desk.NextSend(simulator.Before, simulator.Hang)
			nought := p.Mirror(replica)
			p.desk.AwaitFired(2)

			effects := p.Ends(replica, happened, Happened) + p.Ends(replica, nought, CameToNought)
			for _, m := range []*Mirror{happened, nought} {
				p.Check(p.Count("SELECT count(*) FROM events WHERE operation_id = $1 AND type = 'unknown'", m.Operation) > 0, "the mirror was never unknown")
			}
			if p.ability == keyIgnored {
				return effects // a request that arrives during the look is one that nothing protects
			}
			return effects + p.frozenDesk()
		})
	},
}

// frozenDesk freezes the desk with the request at its door, which it works on when it goes on: while it is asked.
func (p *Part) frozenDesk() (effects int) {
	replica := p.Replica(p.desk.URL())
	p.Freeze(p.desk.Service)
	m := p.Mirror(replica)
	p.AwaitState(replica, m, "unknown")
	p.must(p.desk.Thaw())
	if !p.canResend() {
		p.desk.AwaitEffect(m.EffectKey)
	}
	effects = p.EndsSomehow(replica, m)
	p.Check(effects == 1, "the desk has %d tickets, want 1", effects)
	return effects
}
