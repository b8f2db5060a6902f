package deployments

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/outbox"
	"github.com/einmal/einmal/pkg/problem"
)

// shown is the version of an environment, and what is live there of the service that a rollout brings out. Neither changes while the
// rollout holds the lock.
func (s *settler) shown(tx database.Tx, e outbox.Effect) (string, error) {
	var c rolloutCommand
	if err := json.Unmarshal(e.Command, &c); err != nil {
		return "", fmt.Errorf("read command of %s: %w", e.ID, err)
	}
	env, err := s.store.environment(tx.DB, e.AccountID, c.Environment)
	if err != nil {
		return "", err
	}
	live, err := s.store.release(tx, e.AccountID, c.Environment, c.Service)
	if err != nil && !errors.Is(err, errNotFound) {
		return "", err
	}
	if live.DeploymentID == "" {
		live.DeploymentID = "nothing"
	}
	return fmt.Sprintf("%s, version %d: %s is live of %s", env.Name, env.Version, live.DeploymentID, c.Service), nil
}

// approved is called when a person has said yes to a deployment, in that transaction. It comes to its environment only now.
func (s *settler) approved(tx database.Tx, e outbox.Effect) error {
	d, err := s.store.byOperation(tx.DB, e.AccountID, e.OperationID)
	if err != nil {
		return err
	}
	env, err := s.store.enter(tx, d.AccountID, d.Environment)
	if err != nil {
		return err
	}
	d.Arrival, d.Waiting = env.Arrivals, env.locked() && d.Queues
	if err := s.store.arrives(tx, d); err != nil {
		return err
	}
	switch {
	case d.Waiting:
		return nil
	case env.locked():
		return s.outbox.Refuse(tx, d.AccountID, d.OperationID, byLock)
	case !d.fits(env):
		return s.outbox.Refuse(tx, d.AccountID, d.OperationID, byChange)
	}
	if err := s.store.hold(tx, d); err != nil {
		return err
	}
	return s.outbox.Turn(tx, d.AccountID, d.OperationID)
}

// lockedWhenApproved says why a deployment has failed that was not to wait. It is final: what was agreed to may not be wanted after the other.
func (s *settler) lockedWhenApproved(tx database.Tx, d Deployment) (*problem.Problem, error) {
	env, err := s.store.environment(tx.DB, d.AccountID, d.Environment)
	if err != nil {
		return nil, err
	}
	holder, err := s.store.byID(tx.DB, env.AccountID, env.Holder)
	if err != nil {
		return nil, err
	}
	p := problem.New(problem.EnvironmentLocked, fmt.Sprintf("When a person said yes, deployment %s (operation %s) held %s.", holder.ID, holder.OperationID, env.Name))
	p.Holder = &problem.Holder{DeploymentID: holder.ID, OperationID: holder.OperationID}
	p.Retry, p.NextAction, p.RetryAfterSeconds = problem.RetryNewKey, problem.NextNewOperation, 0
	return p, nil
}
