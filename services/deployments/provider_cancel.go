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
	r, err := s.cluster.call(ctx, call{method: http.MethodPost, path: "/cluster/v1/stops", effectKey: e.EffectKey, token: e.Token, body: command})
	if err != nil {
		return outbox.FailedSend(err)
	}
	return r.afterStop(command)
}

// Lookup asks whether the rollout was broken off.
func (s stops) Lookup(ctx context.Context, e outbox.Effect) outbox.Evidence {
	command, bad := stopOf(e)
	if bad != nil {
		return *bad
	}
	r, err := s.cluster.look(ctx, command.Rollout)
	if err != nil {
		return outbox.FailedAsk(err)
	}
	return r.afterLookupOfStopped(command)
}

// Close is for targets with a floor for each effect: a stop that comes late does no harm.
func (s stops) Close(context.Context, outbox.Effect) outbox.Evidence {
	return outbox.Evidence{Finding: outbox.Ambiguous, Says: "a stop can't be closed"}
}

func stopOf(e outbox.Effect) (command stopCommand, bad *outbox.Evidence) {
	if err := json.Unmarshal(e.Command, &command); err != nil {
		return command, &outbox.Evidence{Finding: outbox.NotSent, Says: "the command of the effect can't be read by this release"}
	}
	return command, nil
}
