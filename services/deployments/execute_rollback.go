package deployments

import (
	"context"
	"errors"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/idempotency/idemhttp"
	"github.com/einmal/einmal/pkg/problem"
)

// rollBack accepts a deployment of what was live before, exactly as it was named then, once a person has said yes. It is an operation of
// its own, and nothing makes one by itself.
func (cs commands) rollBack(ctx context.Context, req idempotency.Request, id string, command *rollbackDeployment) (idempotency.Result, error) {
	return cs.do(ctx, req, func(tx database.Tx, op idempotency.Operation) (idempotency.Answer, error) {
		d, err := cs.aboutDeployment(tx, op.AccountID, id)
		if err != nil {
			return idempotency.Answer{}, err
		}
		env, err := cs.store.enter(tx, d.AccountID, d.Environment)
		switch {
		case err != nil:
			return idempotency.Answer{}, err
		case env.locked(): // what is live may be about to change
			return idempotency.Answer{}, cs.refuseLocked(tx, env)
		}
		if d, err = cs.store.byID(tx.DB, d.AccountID, d.ID); err != nil { // enter may have waited until it went live
			return idempotency.Answer{}, err
		}
		live, err := cs.store.release(tx, d.AccountID, d.Environment, d.Service)
		switch {
		case errors.Is(err, errNotFound) || err == nil && live.DeploymentID != d.ID:
			return idempotency.Answer{}, idemhttp.RefusalFinal(op, problem.New(problem.NotLive, "Deployment "+d.ID+" is not what is live of "+d.Service+" in "+env.Name+"."))
		case err != nil:
			return idempotency.Answer{}, err
		}
		target, err := cs.target(tx, op, d, command)
		if err != nil {
			return idempotency.Answer{}, err
		}
		back := newDeployment(op, d.Service, env, target.Artifact, tx.Now)
		back.Kind, back.RollbackOf = Rollback, d.ID
		return cs.accept(tx, op, back, true)
	})
}

// target is the deployment whose artifact shall be live again.
func (cs commands) target(tx database.Tx, op idempotency.Operation, d Deployment, command *rollbackDeployment) (Deployment, error) {
	to := d.Replaced
	if command.To != nil {
		to = *command.To
	}
	target, err := cs.store.byID(tx.DB, d.AccountID, to)
	if err != nil && !errors.Is(err, errNotFound) {
		return target, err
	}
	says := ""
	switch {
	case to == "":
		says = "Nothing of " + d.Service + " was live in " + d.Environment + " before deployment " + d.ID + "."
	case err != nil || target.Service != d.Service || target.Environment != d.Environment:
		says = "What `to` names is no deployment of " + d.Service + " in " + d.Environment + "." // and may be any text
	case target.State != idempotency.Succeeded:
		says = "Deployment " + to + " has not succeeded: it is " + string(target.State) + "."
	case target.ID == d.ID:
		says = "Deployment " + to + " is the one that is live."
	default:
		return target, nil
	}
	return target, idemhttp.RefusalFinal(op, problem.New(problem.NoRollbackTarget, says))
}
