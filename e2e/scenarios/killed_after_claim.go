package scenarios

var killedAfterClaim = Scenario{
	Name:    "killed_after_claim",
	Promise: "A process killed between its claim and its effect leaves an effect that is sent once, or is known not to be known.",
	Injects: true,
	run: func(s *Stage) int {
		return s.EachAbility(everyAbilityAndLie, brisk, func(p *Part) int {
			return p.killBeforeTheTake() + p.killWithTheSendOnItsWay()
		})
	},
}

// killBeforeTheTake kills a process when it has answered and before it has taken the effect: nothing is in doubt, so every desk is sent to.
func (p *Part) killBeforeTheTake() (effects int) {
	const most = 20 // the take follows the answer by some milliseconds, which a slow machine may miss
	replica := p.Replica(p.desk.URL())
	for try := 1; try <= most; try++ {
		answer := p.Create(replica.URL(), p.NewKey(), p.NewTicket().JSON())
		p.Kill(replica)
		m := p.mirrorOf(answer)
		taken := p.Count("SELECT attempts FROM effects WHERE operation_id = $1", m.Operation) > 0
		p.Restart(replica)
		if taken {
			effects += p.EndsSomehow(replica, m)
			continue
		}
		effects += p.Succeeds(replica, m)
		m.least, m.most = 1, 1
		p.Notef("killed before the take at try %d", try)
		return effects
	}
	p.Failf("none of %d kills came between a claim and its take", most)
	return effects
}

// killWithTheSendOnItsWay kills a process that has taken the effect, and loses its request.
func (p *Part) killWithTheSendOnItsWay() (effects int) {
	road, replica, m := p.sendLate()
	p.Kill(replica)
	road.Drop()
	p.Restart(replica)
	return p.Ends(replica, m, NeverArrived)
}
