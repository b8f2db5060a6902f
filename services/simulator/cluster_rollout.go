package simulator

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/google/uuid"

	"github.com/einmal/einmal/pkg/database"
)

// newRollout is the body of a send.
type newRollout struct {
	place
	Service  string `json:"service"`
	Artifact string `json:"artifact"` // name@digest, or a repository @ a commit
}

func (n newRollout) validate() error {
	if err := n.place.validate(); err != nil {
		return err
	}
	if _, err := parseKey(n.Service); err != nil {
		return errors.New("service must have 1 to 255 characters, all visible ASCII")
	}
	if _, ok := digestOf(n.Artifact); !ok || len(n.Artifact) > maxDetails {
		return errors.New("artifact must be name@digest: the cluster resolves nothing")
	}
	return nil
}

// notStarted is the answer to a send that begins no rollout for now.
type notStarted struct {
	failure
	Floor   int64   `json:"floor,omitzero"`   // of the environment, where the token is below it
	Rollout *status `json:"rollout,omitzero"` // that goes on instead
}

// rollOut answers a send. The rollout has begun when it is answered, and ends by itself.
func (s *Service) rollOut(tx database.Tx, in request) (Answer, error) {
	var n newRollout
	err := decode(in.body, &n, "account", "environment", "service", "artifact")
	if err == nil {
		err = n.validate()
	}
	token, noToken := tokenHeader(in.http)
	if err = errors.Join(err, noToken); err != nil {
		return turnedAway(http.StatusBadRequest, codeInvalid, err.Error()), nil
	}
	return underKey(tx, in, n, func() (Answer, error) {
		e, err := lockEnvironment(tx, n.place)
		if err != nil {
			return Answer{}, err
		}
		if token < e.Floor {
			return Answer{Status: http.StatusConflict, Body: encode(notStarted{
				failure: failure{codeBelowFloor, fmt.Sprintf("The token %d is below floor %d.", token, e.Floor)}, Floor: e.Floor,
			})}, nil
		}
		going, err := e.running(tx)
		if err != nil {
			return Answer{}, err
		}
		if going != nil {
			now, err := e.status(tx, *going)
			return Answer{Status: http.StatusConflict, Body: encode(notStarted{
				failure: failure{codeBusy, "Another rollout goes on in this environment."}, Rollout: &now,
			})}, err
		}
		if n.Service == refusedService {
			return decided(http.StatusUnprocessableEntity, failure{codeRefused, "The cluster takes no release of this service."}), nil
		}
		r, err := s.begin(tx, in, n, token)
		if err != nil {
			return Answer{}, err
		}
		if err := e.raise(tx, token+1); err != nil {
			return Answer{}, err
		}
		now, err := e.status(tx, r)
		return decided(http.StatusAccepted, now), err
	})
}

// begin makes the rollout happen, and with it its end.
func (s *Service) begin(tx database.Tx, in request, n newRollout, token int64) (rollout, error) {
	r := rollout{
		ID: uuid.Must(uuid.NewV7()).String(), Account: n.Account, Environment: n.Environment, Service: n.Service, Artifact: n.Artifact, Runs: n.Artifact,
		EffectKey: in.EffectKey, Token: token, Ending: rolledOut, StartedAt: tx.Now, EndsAt: tx.Now.Add(s.config.RolloutTime),
	}
	fault, err := takeRolloutFault(tx, in.Call, ofRollouts...)
	switch {
	case err != nil:
		return rollout{}, err
	case fault != nil && fault.Action == OtherDigest:
		r.Runs = anotherThan(n.Artifact)
	case fault != nil: // Half
		r.Ending, r.Runs = partial, mixed
	case n.Service == failingService:
		r.Ending, r.Runs = failed, ""
	}
	if err := tx.Create(&r).Error; err != nil {
		return rollout{}, err
	}
	digest, _ := digestOf(r.Artifact)
	return r, Effect{
		Target: cluster.name, ID: r.ID, Kind: kindRollout, EffectKey: r.EffectKey, Reference: r.reference(), Account: r.Account, At: tx.Now,
		Environment: r.Environment, Digest: digest, Token: token, StartedAt: &r.StartedAt, EndedAt: &r.EndsAt,
	}.record(tx)
}

// anotherThan is an artifact of the same name with another digest.
func anotherThan(artifact string) string {
	last := byte('0')
	if artifact[len(artifact)-1] == last {
		last = '1'
	}
	return artifact[:len(artifact)-1] + string(last)
}
