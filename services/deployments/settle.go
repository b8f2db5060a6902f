package deployments

import (
	"errors"
	"net/http"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/idempotency/idemhttp"
	"github.com/einmal/einmal/pkg/outbox"
	"github.com/einmal/einmal/pkg/problem"
)

const (
	// byChange ends a plan whose environment has changed before its turn came.
	byChange outbox.Reason = "environment changed"

	// byLock ends one that finds its environment locked when a person has said yes, and that does not wait.
	byLock outbox.Reason = "environment locked"
)

// settler writes down how rollouts and stops ended: at the deployment, at its environment, and as the operation's final answer.
type settler struct {
	store  store
	outbox *outbox.Outbox // whose settler this is
}

// rolledOut is called once, in the transaction that ends a rollout. The lock is free only now, and whoever has waited longest has it
// when the transaction ends.
func (s *settler) rolledOut(tx database.Tx, e outbox.Effect, end outbox.End) (idempotency.Answer, error) {
	d, err := s.store.byOperation(tx.DB, e.AccountID, e.OperationID)
	if err != nil {
		return idempotency.Answer{}, err
	}
	if end.State == idempotency.Succeeded && end.Reason == outbox.ByPerson && d.ReportedArtifact != "" && d.ReportedArtifact != d.Artifact {
		return idempotency.Answer{}, problem.Invalid(problem.Violation{
			Pointer: "/state", Detail: "can't be succeeded: the cluster says that " + d.ReportedArtifact + " runs. Has that changed since, have it asked again by POST /v1/operations/" + d.OperationID + "/reconcile",
		})
	}
	var no *problem.Problem
	if end.State == idempotency.Succeeded {
		d.Reason = ""
		err = s.goesLive(tx, &d)
	} else {
		no, err = s.failure(tx, d, end)
	}
	if err != nil {
		return idempotency.Answer{}, err
	}
	if no != nil {
		d.Reason = no.Detail
	}
	if err := s.store.finish(tx, d); err != nil {
		return idempotency.Answer{}, err
	}
	if err := s.handOn(tx, d); err != nil {
		return idempotency.Answer{}, err
	}
	if no != nil {
		return idemhttp.Failure(e.OperationID, end.State, no), nil
	}
	if d, err = s.store.byID(tx.DB, d.AccountID, d.ID); err != nil {
		return idempotency.Answer{}, err
	}
	return answer(http.StatusCreated, d)
}

// goesLive makes a deployment that has succeeded the live release of its service.
func (s *settler) goesLive(tx database.Tx, d *Deployment) error {
	before, err := s.store.release(tx, d.AccountID, d.Environment, d.Service)
	if err != nil && !errors.Is(err, errNotFound) {
		return err
	}
	d.Replaced = before.DeploymentID
	return s.store.live(tx, *d)
}

// handOn takes the lock from a deployment that holds it, and gives it to the first that waits and whose plan still holds. One that somebody
// else is ending at this moment waits no more; its effect is taken before its row, as by whoever ends it.
func (s *settler) handOn(tx database.Tx, d Deployment) error {
	left, err := s.store.leave(tx, d)
	if err != nil || !left {
		return err
	}
	env, err := s.store.environment(tx.DB, d.AccountID, d.Environment)
	if err != nil {
		return err
	}
	for after := int64(0); ; {
		next, err := s.store.firstWaiting(tx, d.AccountID, d.Environment, after)
		switch {
		case errors.Is(err, errNotFound):
			return nil
		case err != nil:
			return err
		}
		after = next.Arrival
		if next.mayEnter(env) {
			if err = s.outbox.Turn(tx, next.AccountID, next.OperationID); err == nil {
				return s.store.hold(tx, next)
			}
		} else {
			err = s.outbox.Refuse(tx, next.AccountID, next.OperationID, byChange)
		}
		if err != nil && !errors.Is(err, outbox.ErrNotWaiting) {
			return err
		}
	}
}

// failure says why a deployment has not succeeded.
func (s *settler) failure(tx database.Tx, d Deployment, end outbox.End) (*problem.Problem, error) {
	live, err := s.store.release(tx, d.AccountID, d.Environment, d.Service)
	if err != nil && !errors.Is(err, errNotFound) {
		return nil, err
	}
	runs := "Nothing of " + d.Service + " was live in " + d.Environment + " before."
	switch {
	case end.Evidence.Runs != "":
		runs = "The cluster says that " + end.Evidence.Runs + " runs."
	case live.Artifact != "":
		runs = "What was live before is " + live.Artifact + "."
	}
	if end.Unapproved() {
		return problem.New(problem.Code(end.Reason), end.Evidence.Says+" "+runs), nil
	}
	switch end.Reason {
	case byLock:
		return s.lockedWhenApproved(tx, d)
	case byChange:
		env, err := s.store.environment(tx.DB, d.AccountID, d.Environment)
		return problem.New(problem.EnvironmentChanged, changedReason(d, env)), err
	case outbox.ByVerdict:
		if end.Evidence.Reference != "" { // it had begun
			return problem.New(problem.RolloutFailed, "The cluster has tried the release, and it failed. "+runs), nil
		}
		return problem.New(problem.EffectRefused, "The cluster does not take this release: it "+end.Evidence.Says+". "+runs), nil
	case outbox.ByRefusal:
		return problem.New(problem.EffectRefused, "The cluster does not take this release: it "+end.Evidence.Says+". "+runs), nil
	case outbox.ByStop:
		return problem.New(problem.OperationCanceled, "The rollout was broken off. "+runs), nil
	case outbox.ByPerson:
		if end.State == idempotency.Canceled {
			return problem.New(problem.OperationCanceled, "The deployment was withdrawn. "+runs), nil
		}
		return problem.New(problem.RolloutFailed, "A person has found that this release does not run. "+runs), nil
	case outbox.ByDeadline:
		return problem.New(problem.DeadlineExceeded, "The rollout did not begin before the deadline, and can't any more. "+runs), nil
	}
	if end.State == idempotency.Canceled {
		return problem.New(problem.OperationCanceled, "The deployment was withdrawn, and closed at the cluster before it began. "+runs), nil
	}
	return problem.New(problem.AttemptsExhausted, "The cluster could not be brought to begin the rollout within the attempts, and is closed for it. "+runs), nil
}
