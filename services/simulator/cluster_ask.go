package simulator

import (
	"errors"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/einmal/einmal/pkg/database"
)

// lookUpRollouts answers a look-up: an empty list says that the cluster shows no such rollout now, nothing more.
func lookUpRollouts(tx database.Tx, in request) (Answer, error) {
	if !in.abilities.Lookup {
		return turnedAway(http.StatusNotImplemented, codeNotOffered, "This cluster offers no look-up."), nil
	}
	query := tx.Where("effect_key = ?", in.EffectKey)
	if in.EffectKey == "" {
		query = tx.Where("id = ?", strings.TrimPrefix(in.http.URL.Query().Get("reference"), "rollout_"))
	}
	var all []rollout
	if err := query.Order("id").Find(&all).Error; err != nil {
		return Answer{}, err
	}
	found := struct {
		Items []status `json:"items"`
	}{[]status{}}
	for _, r := range all {
		if tx.Now.Before(r.StartedAt.Add(in.abilities.lag())) {
			continue
		}
		now, err := statusOf(tx, r)
		if err != nil {
			return Answer{}, err
		}
		found.Items = append(found.Items, now)
	}
	return decided(http.StatusOK, found), nil
}

// statusOf is how a rollout is now, for calls that have not locked its environment.
func statusOf(tx database.Tx, r rollout) (status, error) {
	e, err := lockEnvironment(tx, r.place())
	if err != nil {
		return status{}, err
	}
	return e.status(tx, r)
}

// rolloutsUnder are the rollouts of an effect key in an environment, the first first.
func (e environment) rolloutsUnder(tx database.Tx, effectKey string) (all []rollout, err error) {
	err = e.rollouts(tx).Where("effect_key = ?", effectKey).Order("id").Find(&all).Error
	return all, err
}

// rolloutClosed is the answer to a close.
type rolloutClosed struct {
	EffectKey string  `json:"effect_key"`
	Floor     int64   `json:"floor"`            // of the environment from now on
	Rollout   *status `json:"rollout,omitzero"` // under the key; absent: none has begun
	Running   *status `json:"running,omitzero"` // whatever goes on in the environment
}

// closeRollout answers a close: no token below the floor begins a rollout any more. Its answer is conclusive, whatever look-ups show.
func closeRollout(tx database.Tx, in request) (Answer, error) {
	if !in.abilities.Close {
		return turnedAway(http.StatusNotImplemented, codeNotOffered, "This cluster has no floor for tokens."), nil
	}
	var command struct {
		place
		Floor int64 `json:"floor"`
	}
	err := decode(in.body, &command, "account", "environment", "floor")
	if err == nil {
		err = command.validate()
	}
	if err == nil && command.Floor < 1 {
		err = errors.New("floor must be a whole number from 1 on")
	}
	if err != nil {
		return turnedAway(http.StatusBadRequest, codeInvalid, err.Error()), nil
	}
	e, err := lockEnvironment(tx, command.place)
	if err != nil {
		return Answer{}, err
	}
	if err := e.raise(tx, command.Floor); err != nil {
		return Answer{}, err
	}
	answer := rolloutClosed{EffectKey: in.EffectKey, Floor: e.Floor}
	under, err := e.rolloutsUnder(tx, in.EffectKey)
	if err != nil {
		return Answer{}, err
	}
	if len(under) > 0 {
		now, err := e.status(tx, under[len(under)-1])
		if err != nil {
			return Answer{}, err
		}
		answer.Rollout = &now
	}
	going, err := e.running(tx)
	if err != nil {
		return Answer{}, err
	}
	if going != nil {
		now, err := e.status(tx, *going)
		if err != nil {
			return Answer{}, err
		}
		answer.Running = &now
	}
	return decided(http.StatusOK, answer), nil
}

// newStop is the body of a stop.
type newStop struct {
	place
	Rollout string `json:"rollout"` // its effect key
}

// stopDone is the answer to a stop.
type stopDone struct {
	Reference string  `json:"reference"`
	State     ending  `json:"state"` // of the rollout: stopped, never_started, or how it had ended before
	Floor     int64   `json:"floor"`
	Rollout   *status `json:"rollout,omitzero"`
}

// stopRollout answers a stop. From then on no rollout begins with its token or a lower one, and the one that goes on is broken off.
func stopRollout(tx database.Tx, in request) (Answer, error) {
	var n newStop
	err := decode(in.body, &n, "account", "environment", "rollout")
	if err == nil {
		err = n.validate()
	}
	token, noToken := tokenHeader(in.http)
	_, noKey := parseKey(n.Rollout)
	if err = errors.Join(err, noToken, noKey); err != nil {
		return turnedAway(http.StatusBadRequest, codeInvalid, err.Error()), nil
	}
	return underKey(tx, in, n, func() (Answer, error) {
		e, err := lockEnvironment(tx, n.place)
		if err != nil {
			return Answer{}, err
		}
		if err := e.raise(tx, token+1); err != nil {
			return Answer{}, err
		}
		under, err := e.rolloutsUnder(tx, n.Rollout)
		if err != nil {
			return Answer{}, err
		}
		done := stopDone{Reference: "stop_" + uuid.Must(uuid.NewV7()).String(), State: neverStarted, Floor: e.Floor}
		if len(under) > 0 {
			r := under[len(under)-1]
			if r.state(tx.Now) == running {
				if r, err = breakOff(tx, in, r, done.Reference); err != nil {
					return Answer{}, err
				}
			}
			now, err := e.status(tx, r)
			if err != nil {
				return Answer{}, err
			}
			done.State, done.Rollout = now.State, &now
		}
		return decided(http.StatusOK, done), nil
	})
}

// breakOff ends a rollout that goes on.
func breakOff(tx database.Tx, in request, r rollout, reference string) (rollout, error) {
	r.Ending, r.Runs, r.EndsAt = stopped, "", tx.Now
	fault, err := takeRolloutFault(tx, in.Call, Half)
	if err != nil {
		return r, err
	}
	if fault != nil {
		r.Ending, r.Runs = partial, mixed
	}
	err = tx.Model(&rollout{}).Where("id = ?", r.ID).Updates(map[string]any{"ending": r.Ending, "runs": r.Runs, "ends_at": r.EndsAt}).Error
	if err != nil {
		return r, err
	}
	err = tx.Model(&Effect{}).Where("target = ? AND id = ?", cluster.name, r.ID).Update("ended_at", tx.Now).Error
	if err != nil {
		return r, err
	}
	digest, _ := digestOf(r.Artifact)
	return r, Effect{
		Target: cluster.name, ID: uuid.Must(uuid.NewV7()).String(), Kind: kindStop, EffectKey: in.EffectKey, Reference: reference, Account: r.Account,
		At: tx.Now, Environment: r.Environment, Digest: digest, Token: r.Token, StartedAt: &tx.Now, EndedAt: &tx.Now,
	}.record(tx)
}
