package scenarios

import "github.com/einmal/einmal/services/simulator"

var killedAfterEffect = Scenario{
	Name:    "killed_after_effect",
	Promise: "A process killed after its effect and before it has heard of it causes no second one: the desk is asked, or a person.",
	Injects: true,
	run: func(s *Stage) int {
		return s.EachAbility(everyAbilityAndLie, brisk, func(p *Part) int {
			replica := p.Replica(p.desk.URL())
			p.desk.NextSend(simulator.After, simulator.Hang)
			m := p.Mirror(replica)
			p.desk.AwaitEffect(m.EffectKey)
			p.Kill(replica)
			p.Restart(replica)
			return p.Ends(replica, m, Happened)
		})
	},
}
