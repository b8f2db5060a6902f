package scenarios

import (
	"net/http"

	"github.com/einmal/einmal/e2e/harness"
	"github.com/einmal/einmal/services/simulator"
)

var unknownNeverExpires = Scenario{
	Name: "unknown_never_expires",
	Promise: "What is not known to have ended is kept for as long as that takes, with its question to a person, and so is the key of what it follows; " +
		"once a person has decided, its time begins.",
	Injects: true,
	run: func(s *Stage) int {
		return s.EachAbility([]ability{byNone, byLookUp}, patient, func(p *Part) int {
			replica := p.Replica(p.desk.URL(), "EINMAL_RESPONSE_RETENTION=1s", "EINMAL_TOMBSTONE_RETENTION=1s", "EINMAL_PURGE_EVERY=50ms")
			fate, moment := Happened, simulator.After
			if p.canAsk() { // what has happened would be found
				fate, moment = CameToNought, simulator.Before
			}
			key, body := p.NewKey(), p.NewTicket().JSON()
			p.desk.NextSend(moment, simulator.Reset)
			m := p.mirrorOf(p.Create(replica.URL(), key, body))
			effects := p.Ends(replica, m, fate)

			status := p.SetStatus(replica.URL(), m.Ticket, p.NewKey(), "in_progress", 0)
			p.Check(status.Status == http.StatusOK, "the status got %v", status)
			later := status.Header.Get("Operation-Id")
			p.Await("what came later is forgotten", func() bool { return p.Count("SELECT count(*) FROM operations WHERE id = $1", later) == 0 })

			p.InReview(replica, m, effects)
			late := p.Create(replica.URL(), key, body)
			p.Problem("the key of what it follows", late, http.StatusGone, "idempotency-key-expired")
			p.Check(late.Text("operation_state") == "succeeded", "that tells %v", late)

			state, reference := "failed", ""
			if effects > 0 {
				state, reference = "succeeded", p.desk.Effects(m.EffectKey)[0].Reference
			}
			p.decide(replica, m, state, reference)
			p.Await("both are forgotten", func() bool {
				return p.Count("SELECT count(*) FROM operations WHERE id = $1 OR resource_id = $2", m.Operation, m.Ticket) == 0
			})
			p.Check(p.Operation(replica, m).Status == http.StatusNotFound, "the mirror is still told")
			kept := p.Do(harness.Call{Base: replica.URL(), Method: http.MethodGet, Path: "/v1/tickets/" + m.Ticket})
			p.Check(kept.Status == http.StatusOK, "the ticket is gone: %v", kept)
			p.Check(p.Count("SELECT count(*) FROM effects WHERE effect_key = $1 AND state = $2 AND idempotency_key = ''", m.EffectKey, state) == 1, "of the effect is not left what is needed")
			p.Notef("kept while a person was asked, forgotten after the answer")
			return effects
		})
	},
}
