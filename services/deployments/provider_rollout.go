package deployments

import (
	"context"
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
func (rs rollouts) Send(ctx context.Context, e outbox.Effect) outbox.Evidence {
	command, bad := rolloutOf(e)
	if bad != nil {
		return *bad
	}
	r, err := rs.cluster.call(ctx, call{method: http.MethodPost, path: "/cluster/v1/rollouts", effectKey: e.EffectKey, token: e.Token, body: command})
	if err != nil {
		return outbox.FailedSend(err)
	}
	return r.afterRollout(e.EffectKey, command)
}

// Lookup asks how the rollout goes.
func (rs rollouts) Lookup(ctx context.Context, e outbox.Effect) outbox.Evidence {
	command, bad := rolloutOf(e)
	if bad != nil {
		return *bad
	}
	r, err := rs.cluster.look(ctx, e.EffectKey)
	if err != nil {
		return outbox.FailedAsk(err)
	}
	return r.afterLookup(e.EffectKey, command)
}

// Close raises the cluster's floor above every token that was drawn for the rollout, and says what has become of it.
func (rs rollouts) Close(ctx context.Context, e outbox.Effect) outbox.Evidence {
	command, bad := rolloutOf(e)
	if bad != nil {
		return *bad
	}
	r, err := rs.cluster.call(ctx, call{
		method: http.MethodPost, path: "/cluster/v1/effects/" + url.PathEscape(e.EffectKey) + "/close",
		body: struct {
			Account     string `json:"account"`
			Environment string `json:"environment"`
			Floor       int64  `json:"floor"`
		}{command.Account, command.Environment, e.Token + 1},
	})
	if err != nil {
		return outbox.FailedAsk(err)
	}
	return r.afterClose(e.EffectKey, e.Token, command)
}

// rolloutOf reads the command of an effect. One that can't be read was not sent by this release.
func rolloutOf(e outbox.Effect) (command rolloutCommand, bad *outbox.Evidence) {
	if err := json.Unmarshal(e.Command, &command); err != nil {
		return command, &outbox.Evidence{Finding: outbox.NotSent, Says: "the command of the effect can't be read by this release"}
	}
	return command, nil
}
