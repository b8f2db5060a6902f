package deployments

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/go-json-experiment/json"

	"github.com/einmal/einmal/pkg/outbox"
)

// rolloutCommand is what an effect of a deployment tells the cluster.
type rolloutCommand struct {
	Account     string `json:"account"`
	Environment string `json:"environment"`
	Service     string `json:"service"`
	Artifact    string `json:"artifact"`
}

// rollouts begins rollouts, and finds out how they end.
type rollouts struct {
	cluster cluster
}

// Send begins the rollout. The cluster does not wait for its end, and neither do we.
func (r rollouts) Send(ctx context.Context, e outbox.Effect) outbox.Evidence {
	command, bad := rolloutOf(e)
	if bad != nil {
		return *bad
	}
	var answer struct {
		rollout
		Code  string   `json:"code"`
		Other *rollout `json:"rollout"` // that goes on instead
	}
	status, retryAfter, err := r.cluster.call(ctx, call{
		method: http.MethodPost, path: "/cluster/v1/rollouts", effectKey: e.EffectKey, token: e.Token, body: command,
	}, &answer)
	switch {
	case err != nil:
		return outbox.FailedSend(err)
	case status == http.StatusAccepted && answer.isAbout(e.EffectKey):
		return evidenceOf(answer.rollout, command)
	case status == http.StatusUnprocessableEntity && answer.Code == "refused":
		return outbox.Evidence{Finding: outbox.Verdict, Says: fmt.Sprintf("answered %d %s", status, answer.Code)}
	case status == http.StatusConflict && answer.Code == "below_floor":
		return outbox.Evidence{Finding: outbox.NotSent, Says: fmt.Sprintf("below floor %d", answer.Floor), Floor: answer.Floor}
	case status == http.StatusConflict && answer.Code == "busy" && answer.Other != nil && answer.Other.isAbout(e.EffectKey): // a cluster that ignores keys
		return evidenceOf(*answer.Other, command)
	case status == http.StatusConflict && answer.Code == "busy":
		return outbox.Evidence{Finding: outbox.NotSent, Says: "another rollout goes on in this environment", RetryAfter: retryAfter}
	}
	return notBegun(status, answer.Code, retryAfter)
}

// Lookup asks how the rollout goes.
func (r rollouts) Lookup(ctx context.Context, e outbox.Effect) outbox.Evidence {
	command, bad := rolloutOf(e)
	if bad != nil {
		return *bad
	}
	found, failed := r.cluster.look(ctx, e.EffectKey)
	switch {
	case failed != nil:
		return *failed
	case found == nil:
		return outbox.Evidence{Finding: outbox.NotFound, Says: "the cluster shows no such rollout"}
	}
	return evidenceOf(*found, command)
}

// Close raises the cluster's floor above every token that was drawn for the rollout, and says what has become of it.
func (r rollouts) Close(ctx context.Context, e outbox.Effect) outbox.Evidence {
	command, bad := rolloutOf(e)
	if bad != nil {
		return *bad
	}
	var answer struct {
		EffectKey string   `json:"effect_key"`
		Floor     int64    `json:"floor"`
		Rollout   *rollout `json:"rollout"`
	}
	status, _, err := r.cluster.call(ctx, call{
		method: http.MethodPost, path: "/cluster/v1/effects/" + url.PathEscape(e.EffectKey) + "/close",
		body: struct {
			Account     string `json:"account"`
			Environment string `json:"environment"`
			Floor       int64  `json:"floor"`
		}{command.Account, command.Environment, e.Token + 1},
	}, &answer)
	switch {
	case err != nil:
		return outbox.FailedAsk(err)
	case status != http.StatusOK || answer.Floor <= e.Token:
		return outbox.Evidence{Finding: outbox.Ambiguous, Says: fmt.Sprintf("the close was answered %d, with floor %d", status, answer.Floor)}
	case answer.EffectKey != e.EffectKey, answer.Rollout != nil && !answer.Rollout.isAbout(e.EffectKey):
		return outbox.Evidence{Finding: outbox.Ambiguous, Says: "the close was answered about another rollout"}
	case answer.Rollout != nil:
		ev := evidenceOf(*answer.Rollout, command)
		ev.Floor = answer.Floor
		return ev
	}
	return outbox.Evidence{Finding: outbox.Closed, Says: "closed, no rollout had begun", Floor: answer.Floor}
}

// evidenceOf is what the state of a rollout shows. One that succeeded has done what was asked only if that runs.
func evidenceOf(r rollout, asked rolloutCommand) outbox.Evidence {
	ev := outbox.Evidence{Reference: r.Reference, Says: "the rollout is " + r.State, Floor: r.Floor, Runs: r.Runs}
	switch {
	case r.Artifact != asked.Artifact:
		ev.Finding, ev.Says = outbox.Different, "a rollout of "+r.Artifact+" is "+r.State
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

// rolloutOf reads the command of an effect. One that can't be read was not sent by this release.
func rolloutOf(e outbox.Effect) (command rolloutCommand, bad *outbox.Evidence) {
	if err := json.Unmarshal(e.Command, &command); err != nil {
		return command, &outbox.Evidence{Finding: outbox.NotSent, Says: "the command of the effect can't be read by this release"}
	}
	return command, nil
}
