package scenarios

import "github.com/einmal/einmal/services/simulator"

var deskResets = Scenario{
	Name:    "desk_resets",
	Promise: "A connection that ends without an answer says nothing: the desk is asked before anything is sent again.",
	Injects: true,
	run: func(s *Stage) int {
		return s.EachAbility(everyAbilityAndLie, patient, func(p *Part) int {
			replica := p.Replica(p.desk.URL())
			// The first leaves a connection open. On a connection that had been open before, net/http sends again what got no answer, if it can.
			undisturbed := p.Mirror(replica)
			effects := p.Succeeds(replica, undisturbed)
			undisturbed.least, undisturbed.most = 1, 1

			p.desk.NextSend(simulator.After, simulator.Reset)
			effects += p.Ends(replica, p.Mirror(replica), Happened)
			p.desk.NextSend(simulator.After, simulator.Lose)
			effects += p.Ends(replica, p.Mirror(replica), Happened)
			p.desk.NextSend(simulator.Before, simulator.Reset)
			effects += p.Ends(replica, p.Mirror(replica), CameToNought)

			p.desk.NextSend(simulator.After, simulator.Hang)
			m := p.Mirror(replica)
			p.desk.AwaitEffect(m.EffectKey)
			p.Kill(p.desk.Service)
			p.must(p.desk.Start(p.ctx))
			return effects + p.Ends(replica, m, Happened)
		})
	},
}
