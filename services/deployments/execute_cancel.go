package deployments

import (
	"context"
	"errors"
	"net/http"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/idempotency/idemhttp"
	"github.com/einmal/einmal/pkg/outbox"
	"github.com/einmal/einmal/pkg/problem"
)

// cancel withdraws a deployment: at once if it was certainly not sent, else by a stop at the cluster, an effect of its own. From
// then on nothing more of the deployment is sent.
func (cs commands) cancel(ctx context.Context, req idempotency.Request, id string) (idempotency.Result, error) {
	canceled := "" // the operation of the deployment
	result, err := cs.do(ctx, req, func(tx database.Tx, op idempotency.Operation) (idempotency.Answer, error) {
		d, err := cs.aboutDeployment(tx, op.AccountID, id)
		if err != nil {
			return idempotency.Answer{}, err
		}
		canceled = d.OperationID
		effect, err := cs.outbox.Cancel(tx, d.AccountID, d.OperationID)
		if errors.Is(err, outbox.ErrRunning) {
			return idempotency.Answer{}, idemhttp.RefusalFinal(op, problem.New(problem.OperationRunning,
				"The cluster has been sent something else under the effect key of this deployment, and a stop would be of that. A person decides how it ended."))
		}
		if err != nil && !errors.Is(err, outbox.ErrNoEffect) {
			return idempotency.Answer{}, err
		}
		ended := err != nil
		// What was read before may have changed while Cancel waited for whoever settled it, or canceled it too.
		if d, err = cs.store.byID(tx.DB, d.AccountID, d.ID); err != nil {
			return idempotency.Answer{}, err
		}
		switch {
		case ended:
			return idempotency.Answer{}, idemhttp.RefusalFinal(op, problem.New(problem.OperationFinal, "This deployment has "+string(d.State)+"; there is nothing left to cancel."))
		case effect.State == idempotency.Canceled:
			return answer(http.StatusOK, d)
		}
		return cs.stop(tx, op, d, effect)
	})
	if canceled != "" {
		cs.outbox.Announce(canceled)
	}
	return result, err
}

// stop accepts the operation that breaks a rollout off.
func (cs commands) stop(tx database.Tx, op idempotency.Operation, d Deployment, rollout outbox.Effect) (idempotency.Answer, error) {
	if d.StopOperationID != "" {
		before, err := cs.exec.Row(tx, d.AccountID, d.StopOperationID)
		if err != nil {
			return idempotency.Answer{}, err
		}
		if !before.State.Final() {
			return idempotency.Answer{}, idemhttp.RefusalFinal(op, problem.New(problem.OperationRunning, "Operation "+before.ID+" is breaking this deployment off. Wait for its answer."))
		}
	}
	command, err := idemhttp.Marshal(stopCommand{Account: d.AccountID, Environment: d.Environment, Rollout: rollout.EffectKey})
	if err != nil {
		return idempotency.Answer{}, err
	}
	if err := cs.store.stops(tx, d, op.ID); err != nil {
		return idempotency.Answer{}, err
	}
	op.State = idempotency.Queued
	return idempotency.Answer{State: op.State, Resource: about(d.ID)}, cs.outbox.Enqueue(tx, op, stopsName, "stop", command)
}
