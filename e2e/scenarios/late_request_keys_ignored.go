package scenarios

import "net/http"

var lateRequestKeysIgnored = Scenario{
	Name:       "late_request_keys_ignored",
	Promise:    "What no protocol prevents: a desk that breaks its promise about keys has two effects when a request arrives after it was asked.",
	Injects:    true,
	Impossible: true,
	run: func(s *Stage) int {
		return s.EachAbility([]ability{keyIgnored}, brisk, func(p *Part) int {
			road, replica, m := p.sendLate()
			p.Succeeds(replica, m) // by a second send, since the desk had nothing
			late := p.deliver(road)
			p.Check(late.Status == http.StatusCreated, "the late send got %v, want a second ticket", late)
			m.effects = len(p.desk.Effects(m.EffectKey))
			p.Check(m.effects == 2, "the desk has %d tickets, want the two that were expected", m.effects)
			p.Notef("two tickets under one effect key, as expected (docs/protocol.md, Impossible)")
			return m.effects
		})
	},
}
