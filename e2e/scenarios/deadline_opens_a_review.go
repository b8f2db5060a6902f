package scenarios

import (
	"encoding/json"
	"net/http"

	"github.com/einmal/einmal/services/simulator"
)

// hurried sets a deadline that passes within a scenario, and in which a slow machine still sends what is sent at once.
const hurried = "EINMAL_EFFECT_DEADLINE=3s"

var deadlineOpensAReview = Scenario{
	Name:    "deadline_opens_a_review",
	Promise: "Past its deadline nothing is sent: what has certainly not happened has failed, and about anything else a person is asked once, until it has ended.",
	Injects: true,
	run: func(s *Stage) int {
		return s.EachAbility(everyAbilityAndLie, brisk, func(p *Part) int {
			replica, other := p.Replica(p.desk.URL(), hurried), p.Replica(p.desk.URL(), hurried)
			for _, kind := range []string{lookUp, shut} {
				p.desk.Arm(simulator.Misfortune{Operation: kind, When: simulator.Before, Action: simulator.Reset, Times: always})
			}
			p.desk.NextSend(simulator.After, simulator.Reset)
			late := p.Mirror(replica)
			late.least, late.most, late.effects = 1, 1, 1
			p.desk.AwaitFired(1)
			p.desk.NextSendAnswered(simulator.Before, http.StatusTooManyRequests, always)
			never := p.Mirror(other)

			p.AwaitState(replica, never, "failed")
			op := p.Operation(replica, never)
			var told struct {
				Response struct{ Body struct{ Code string } }
			}
			p.must(json.Unmarshal(op.Body, &told))
			p.Check(told.Response.Body.Code == "deadline-exceeded" && op.Text("effect") == "none", "what was turned away until its deadline is %v", op)
			never.most = p.desk.Calls(send, never.EffectKey)
			asked := p.Asked(replica, "deadline", late.Operation)
			p.Check(asked.State == "open" && asked.says("deadline"), "the review is %+v, want it open", asked)
			p.Kill(replica)
			p.Restart(replica)

			p.desk.Disarm()
			if p.canAsk() {
				p.Reconcile(replica, late)
				p.AwaitState(replica, late, "succeeded")
			} else {
				review := p.Operation(replica, late).Text("review_id")
				answer := p.Resolves(replica, review, p.NewKey(), "succeeded", p.desk.Effects(late.EffectKey)[0].Reference)
				p.Check(answer.Status == http.StatusOK, "a person's word: got %v", answer)
			}
			p.AskedOnce("deadline", late.Operation)
			q := p.Question(replica, asked.ID)
			p.Check(q.State == "resolved", "the operation has ended, and the question about it is %+v", q)
			p.Notef("one was never taken and failed, one was asked about and had happened")
			return p.Succeeds(replica, late)
		})
	},
}
