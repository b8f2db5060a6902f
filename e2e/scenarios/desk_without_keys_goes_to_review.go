package scenarios

import (
	"encoding/json"
	"net/http"

	"github.com/einmal/einmal/e2e/harness"
	"github.com/einmal/einmal/services/simulator"
)

var deskWithoutKeysGoesToReview = Scenario{
	Name:    "desk_without_keys_goes_to_review",
	Promise: "A desk without keys is never sent to twice: what can't be found is a person's to decide, and the decision is final.",
	Injects: true,
	run: func(s *Stage) int {
		return s.EachAbility([]ability{byLookUp, byNone}, patient, func(p *Part) int {
			replica := p.Replica(p.desk.URL())
			p.desk.NextSend(simulator.Before, simulator.Reset)
			nought := p.Mirror(replica)
			p.Ends(replica, nought, CameToNought)
			p.decide(replica, nought, "failed", "")
			op := p.Operation(replica, nought)
			p.Check(op.Text("state") == "failed" && op.Text("effect") == "none", "after the decision the mirror is %v, want it failed", op)
			if p.canAsk() {
				p.Notef("what was not found was declared failed by a person")
				return 0
			}
			p.desk.NextSend(simulator.After, simulator.Reset)
			happened := p.Mirror(replica)
			p.Ends(replica, happened, Happened)
			p.decide(replica, happened, "succeeded", p.desk.Effects(happened.EffectKey)[0].Reference)
			p.Notef("what a person found at the desk was declared succeeded, what not, failed")
			return p.Succeeds(replica, happened)
		})
	},
}

// decide resolves the review of a mirror, in the words of a person who has looked.
func (p *Part) decide(replica *harness.Service, m *Mirror, state, reference string) {
	review := p.Operation(replica, m).Text("review_id")
	key := p.NewKey()
	decision, err := json.Marshal(map[string]string{"state": state, "evidence": "asked the people at the desk", "reference": reference})
	p.must(err)
	resolve := func() harness.Answer {
		return p.Do(harness.Call{
			Base: replica.URL(), Method: http.MethodPost, Path: "/v1/reviews/" + review + "/resolution", Token: operator, Key: key, Body: string(decision),
		})
	}
	var resolved harness.Answer
	p.Await("the desk is not being asked any more", func() bool {
		resolved = resolve()
		return resolved.Text("code") != "operation-running"
	})
	p.Check(resolved.Status == http.StatusOK && resolved.Text("state") == "resolved", "the decision got %v, want the review resolved", resolved)
	p.Replayed("the decision again", resolve(), resolved)
	key = p.NewKey()
	p.Problem("a second decision", resolve(), http.StatusConflict, "review-resolved")
}
