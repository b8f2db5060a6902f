package deployments

import (
	"fmt"
	"net/http"

	"github.com/einmal/einmal/pkg/outbox"
)

// afterRollout is the evidence of an answer to a send that begins a rollout.
//
//	202 about the key       it has begun; or an earlier send has
//	422 refused             the cluster's final no, which it keeps under the key
//	409 below_floor         the send came with a token that is not taken any more; it had no effect, a later one may have
//	409 busy                so it had while another rollout goes on. Where that is ours the cluster ignores keys, and it has begun
//	all else                as of every send
func (r reply) afterRollout(effectKey string, asked rolloutCommand) outbox.Evidence {
	answer, _ := bodyOf[struct {
		rollout
		Code  string   `json:"code"`
		Other *rollout `json:"rollout"` // that goes on instead
	}](r)
	ev := r.turnedAway(answer.Code)
	switch {
	case r.status == http.StatusAccepted && answer.isAbout(effectKey):
		return asked.evidence(answer.rollout)
	case r.status == http.StatusUnprocessableEntity && answer.Code == "refused":
		ev.Finding = outbox.Verdict
	case r.status == http.StatusConflict && answer.Code == "below_floor":
		ev.Finding, ev.Says, ev.Floor = outbox.NotSent, fmt.Sprintf("below floor %d", answer.Floor), answer.Floor
	case r.status == http.StatusConflict && answer.Code == "busy" && answer.Other != nil && answer.Other.isAbout(effectKey):
		return asked.evidence(*answer.Other)
	case r.status == http.StatusConflict && answer.Code == "busy":
		ev.Finding, ev.Says = outbox.NotSent, "another rollout goes on in this environment"
	}
	return ev
}

// afterLookup is the evidence of an answer to a look-up of a rollout.
func (r reply) afterLookup(effectKey string, asked rolloutCommand) outbox.Evidence {
	all, ok := r.shown(effectKey)
	switch {
	case !ok:
		return r.unreadable("look-up")
	case len(all) == 0:
		return outbox.Evidence{Finding: outbox.NotFound, Says: "the cluster shows no such rollout"}
	}
	ev := asked.evidence(all[0])
	for _, more := range all[1:] {
		ev.More = append(ev.More, more.Reference)
	}
	return ev
}

// afterClose is the evidence of an answer to a close under a token, which is conclusive only if it is about the key, and if the floor is
// above the token from then on.
func (r reply) afterClose(effectKey string, token int64, asked rolloutCommand) outbox.Evidence {
	answer, ok := bodyOf[struct {
		EffectKey string   `json:"effect_key"`
		Floor     int64    `json:"floor"`
		Rollout   *rollout `json:"rollout"`
	}](r)
	switch {
	case !ok || r.status != http.StatusOK || answer.EffectKey != effectKey || answer.Floor <= token,
		answer.Rollout != nil && !answer.Rollout.isAbout(effectKey):
		return r.unreadable("close")
	case answer.Rollout == nil:
		return outbox.Evidence{Finding: outbox.Closed, Says: "closed, no rollout had begun", Floor: answer.Floor}
	}
	ev := asked.evidence(*answer.Rollout)
	ev.Floor = answer.Floor
	return ev
}

// evidence is what the state of a rollout under our key shows. One that succeeded has done what was asked only if that runs.
func (asked rolloutCommand) evidence(r rollout) outbox.Evidence {
	if r.Artifact != asked.Artifact || r.Service != asked.Service || r.Environment != asked.Environment {
		// What runs there, and from which token on, may be another environment's.
		return outbox.Evidence{
			Finding: outbox.Different, Reference: r.Reference, Says: fmt.Sprintf("a rollout of %s, %s, in %s is %s", r.Service, r.Artifact, r.Environment, r.State),
		}
	}
	ev := outbox.Evidence{Reference: r.Reference, Says: "the rollout is " + r.State, Floor: r.Floor, Runs: r.Runs}
	switch {
	case r.State == "running":
		ev.Finding = outbox.Accepted
	case r.State == "succeeded" && r.Runs == asked.Artifact:
		ev.Finding = outbox.Confirmed
	case r.State == "succeeded":
		ev.Finding, ev.Says = outbox.Different, "the rollout has succeeded, and "+r.Runs+" runs"
	case r.State == "failed":
		ev.Finding = outbox.Verdict
	case r.State == "stopped":
		ev.Finding = outbox.Stopped
	default: // partial, or a word of a newer cluster
		ev.Finding = outbox.Different
	}
	return ev
}
