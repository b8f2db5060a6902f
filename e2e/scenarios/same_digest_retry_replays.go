package scenarios

import (
	"github.com/einmal/einmal/e2e/faults"
	"github.com/einmal/einmal/services/simulator"
)

var sameDigestRetryReplays = Scenario{
	Name:    "same_digest_retry_replays",
	Promise: "A deployment that is sent again and again because answers get lost, on both sides, is one rollout and one answer.",
	Injects: true,
	run: func(s *Stage) int {
		return s.EachClusterKeys(brisk, usual, func(y *Yard) int {
			first, second := y.Replica(), y.Replica()
			lossy := y.HTTPProxy(first)
			r := y.Plans()
			y.cluster.Next(send, simulator.After, simulator.Reset)
			lossy.Next(faults.LoseAnswer)
			answer := y.Do(callFor(lossy.URL(), r))
			y.Check(answer.Err != nil, "the answer was not lost: %v", answer)
			known := y.Ask(second, r)
			y.Check(known.Err == nil && (known.Status == 202 || known.Status == 201), "again: got %v, want it accepted or done", known)
			r.Operation = known.Header.Get("Operation-Id")
			r.ID = y.Text("SELECT resource_id FROM operations WHERE id = $1", r.Operation)
			r.EffectKey = y.Text("SELECT effect_key FROM effects WHERE operation_id = $1", r.Operation)
			y.Succeeds(second, r)
			stored := y.Ask(first, r)
			y.Replayed("once more, at each replica", y.Ask(second, r), stored)
			return 1
		})
	},
}
