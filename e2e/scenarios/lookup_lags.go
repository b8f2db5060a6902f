package scenarios

import (
	"time"

	"github.com/einmal/einmal/services/simulator"
)

var lookupLags = Scenario{
	Name:    "lookup_lags",
	Promise: "A look-up that does not show yet what has happened fails nothing: with keys it is sent again and replayed, without it is looked for again.",
	Injects: true,
	run: func(s *Stage) int {
		return s.EachAbility([]ability{byKey, byLookUp}, patient, func(p *Part) int {
			const lag = 1200 * time.Millisecond
			lagging := p.can
			lagging.LagMS = lag.Milliseconds()
			p.desk.Can(lagging)
			replica := p.Replica(p.desk.URL())
			p.desk.NextSend(simulator.After, simulator.Reset)
			m := p.Mirror(replica)
			m.least, m.most = 1, 1
			if p.canResend() {
				m.least, m.most = 2, always
			}
			p.AwaitState(replica, m, "succeeded") // by itself: asking for looks would use up those that may find nothing
			looks := p.desk.Calls(lookUp, m.EffectKey)
			p.Check(looks > 0, "nobody looked")
			p.Check(p.canResend() || looks > 1, "the first look found it, so nothing lagged")
			p.Notef("%d looks, %d sends", looks, p.desk.Calls(send, m.EffectKey))
			return p.Succeeds(replica, m)
		})
	},
}
