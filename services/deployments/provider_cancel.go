package deployments

import (
	"context"
	"net/http"

	"github.com/go-json-experiment/json"

	"github.com/einmal/einmal/pkg/outbox"
)

// stopCommand is what an effect of a cancelation tells the cluster.
type stopCommand struct {
	Account     string `json:"account"`
	Environment string `json:"environment"`
	Rollout     string `json:"rollout"` // its effect key
}

// stops breaks rollouts off.
type stops struct {
	cluster cluster
}

// Send raises the floor above the rollout's token and breaks it off, if it goes on.
func (s stops) Send(ctx context.Context, e outbox.Effect) outbox.Evidence {
	command, bad := stopOf(e)
	if bad != nil {
		return *bad
	}
	var answer struct {
		Code      string   `json:"code"`
		Reference string   `json:"reference"`
		State     string   `json:"state"`
		Floor     int64    `json:"floor"`
		Rollout   *rollout `json:"rollout"`
	}
	status, retryAfter, err := s.cluster.call(ctx, call{
		method: http.MethodPost, path: "/cluster/v1/stops", effectKey: e.EffectKey, token: e.Token, body: command,
	}, &answer)
	switch {
	case err != nil:
		return outbox.FailedSend(err)
	case status != http.StatusOK:
		return notBegun(status, answer.Code, retryAfter)
	case answer.Reference == "" || answer.State == "" || answer.Rollout != nil && !answer.Rollout.isAbout(command.Rollout):
		return outbox.Evidence{Finding: outbox.Ambiguous, Says: "the stop was answered with something else"}
	}
	ev := stopEvidence(answer.State, answer.Rollout)
	ev.Reference, ev.Floor = answer.Reference, answer.Floor
	return ev
}

// Lookup asks whether the rollout was broken off.
func (s stops) Lookup(ctx context.Context, e outbox.Effect) outbox.Evidence {
	command, bad := stopOf(e)
	if bad != nil {
		return *bad
	}
	found, failed := s.cluster.look(ctx, command.Rollout)
	switch {
	case failed != nil:
		return *failed
	case found == nil || found.State == "running": // it may have been lost, and can be said again
		return outbox.Evidence{Finding: outbox.NotFound, Says: "the rollout was not broken off yet"}
	}
	ev := stopEvidence(found.State, found)
	ev.Floor = found.Floor
	return ev
}

// Close is for targets with a floor for each effect: a stop that comes late does no harm.
func (s stops) Close(context.Context, outbox.Effect) outbox.Evidence {
	return outbox.Evidence{Finding: outbox.Ambiguous, Says: "a stop can't be closed"}
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

func stopOf(e outbox.Effect) (command stopCommand, bad *outbox.Evidence) {
	if err := json.Unmarshal(e.Command, &command); err != nil {
		return command, &outbox.Evidence{Finding: outbox.NotSent, Says: "the command of the effect can't be read by this release"}
	}
	return command, nil
}
