package deployments

import (
	"net/http"

	"github.com/einmal/einmal/pkg/outbox"
)

// afterStop is the evidence of an answer to a stop: what it says of the rollout, else as of every send. Its no to a stop is about that,
// and no verdict about the rollout.
func (r reply) afterStop(asked stopCommand) outbox.Evidence {
	answer, _ := bodyOf[struct {
		Code      string   `json:"code"`
		Reference string   `json:"reference"`
		State     string   `json:"state"`
		Floor     int64    `json:"floor"`
		Rollout   *rollout `json:"rollout"`
	}](r)
	if r.status != http.StatusOK || answer.Reference == "" || answer.State == "" || answer.Rollout != nil && !answer.Rollout.isAbout(asked.Rollout) {
		return r.turnedAway(answer.Code)
	}
	ev := stopEvidence(answer.State, answer.Rollout)
	ev.Reference, ev.Floor = answer.Reference, answer.Floor
	return ev
}

// afterLookupOfStopped is the evidence of an answer to a look-up of the rollout that a stop is to break off.
func (r reply) afterLookupOfStopped(asked stopCommand) outbox.Evidence {
	all, ok := r.shown(asked.Rollout)
	switch {
	case !ok:
		return r.unreadable("look-up")
	case len(all) == 0 || all[0].State == "running": // it may have been lost, and can be said again
		return outbox.Evidence{Finding: outbox.NotFound, Says: "the rollout was not broken off yet"}
	}
	ev := stopEvidence(all[0].State, &all[0])
	ev.Floor = all[0].Floor
	return ev
}

// stopEvidence is what the state of a rollout shows of the stop that was asked for. It has done its work only if what ran before runs again.
func stopEvidence(state string, r *rollout) outbox.Evidence {
	ev := outbox.Evidence{Says: "is " + state}
	if r != nil {
		ev.Runs = r.Runs
	}
	switch state {
	case "stopped", "never_started":
		ev.Finding = outbox.Confirmed
	case "succeeded", "failed":
		ev.Finding, ev.Says = outbox.Verdict, "had "+state
	default:
		ev.Finding, ev.Says = outbox.Different, "was broken off half-way: it is "+state
	}
	return ev
}
