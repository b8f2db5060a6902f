package deployments

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/idempotency/idemhttp"
	"github.com/einmal/einmal/pkg/outbox"
	"github.com/einmal/einmal/pkg/problem"
)

// stopped is called once, in the transaction that ends a stop. A stop that the cluster confirms ends the rollout's operation as well.
func (s *settler) stopped(tx database.Tx, e outbox.Effect, end outbox.End) (idempotency.Answer, error) {
	d, err := s.store.byStop(tx.DB, e.AccountID, e.OperationID)
	if err != nil {
		return idempotency.Answer{}, err
	}
	if end.State != idempotency.Succeeded {
		return idemhttp.Failure(e.OperationID, end.State, s.notStopped(d, end)), nil
	}
	// A person's word sets no lock free: the rollout, of which nothing is sent any more, is closed and asked, and ends by that.
	if end.Reason == outbox.ByPerson {
		_, err = s.outbox.Reconcile(tx, d.AccountID, d.OperationID)
	} else {
		err = s.outbox.Stopped(tx, d.AccountID, d.OperationID, end.Evidence)
	}
	if err != nil && !errors.Is(err, outbox.ErrNoEffect) {
		return idempotency.Answer{}, err
	}
	if d, err = s.store.byID(tx.DB, d.AccountID, d.ID); err != nil {
		return idempotency.Answer{}, err
	}
	return answer(http.StatusOK, d)
}

// notStopped says why a rollout was not broken off.
func (s *settler) notStopped(d Deployment, end outbox.End) *problem.Problem {
	switch {
	case end.Reason == outbox.ByVerdict:
		return problem.New(problem.OperationFinal, "The rollout had ended before it could be broken off: it "+end.Evidence.Says+".")
	case end.State == idempotency.Canceled:
		return problem.New(problem.OperationCanceled, "The stop was withdrawn.")
	case end.Reason == outbox.ByPerson:
		return problem.New(problem.EffectRefused, "A person has found that the rollout was not broken off.")
	case end.Reason == outbox.ByDeadline:
		return problem.New(problem.DeadlineExceeded, fmt.Sprintf("The cluster could not be brought to break %s off before the deadline.", d.ID))
	case end.Reason == outbox.ByRefusal:
		return problem.New(problem.EffectRefused, "The cluster does not take this stop: it "+end.Evidence.Says+".")
	}
	return problem.New(problem.AttemptsExhausted, fmt.Sprintf("The cluster could not be brought to break %s off within the attempts.", d.ID))
}
