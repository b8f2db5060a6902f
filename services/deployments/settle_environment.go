package deployments

import (
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/outbox"
)

// lock is the environment's, as the outbox needs it for rollouts.
func (s *settler) lock() *outbox.Lock {
	of := func(tx database.Tx, e outbox.Effect) (Deployment, error) {
		return s.store.byOperation(tx.DB, e.AccountID, e.OperationID)
	}
	return &outbox.Lock{
		Draw: func(tx database.Tx, e outbox.Effect) (int64, error) {
			d, err := of(tx, e)
			if err != nil {
				return 0, err
			}
			return s.store.draw(tx, d)
		},
		Read: func(tx database.Tx, e outbox.Effect) (int64, error) {
			d, err := of(tx, e)
			return d.FencingToken, err
		},
		Learn: func(tx database.Tx, e outbox.Effect, ev outbox.Evidence) error {
			d, err := of(tx, e)
			if err != nil {
				return err
			}
			return s.learn(tx, d, ev)
		},
		MayDecide: func(tx database.Tx, e outbox.Effect) error {
			d, err := of(tx, e)
			if err != nil {
				return err
			}
			env, err := s.store.environment(tx.DB, d.AccountID, d.Environment)
			if err == nil && env.Floor <= d.FencingToken {
				return outbox.ErrNotClosed
			}
			return err
		},
	}
}

// stopLock is the same for stops, which go out under the token of their rollout, and hold nothing.
func (s *settler) stopLock() *outbox.Lock {
	of := func(tx database.Tx, e outbox.Effect) (Deployment, error) {
		return s.store.byStop(tx.DB, e.AccountID, e.OperationID)
	}
	token := func(tx database.Tx, e outbox.Effect) (int64, error) {
		d, err := of(tx, e)
		return d.FencingToken, err
	}
	return &outbox.Lock{
		Draw: token, Read: token,
		Learn: func(tx database.Tx, e outbox.Effect, ev outbox.Evidence) error {
			d, err := of(tx, e)
			if err != nil {
				return err
			}
			return s.learn(tx, d, ev)
		},
		MayDecide: func(database.Tx, outbox.Effect) error { return nil },
	}
}

// learn keeps what the cluster says beside how a call ended: which tokens it takes, and, at the end of a rollout, what runs.
func (s *settler) learn(tx database.Tx, d Deployment, ev outbox.Evidence) error {
	if ev.Floor > 0 {
		if err := s.store.floor(tx, d, ev.Floor); err != nil {
			return err
		}
	}
	if ev.Runs == "" || ev.Finding == outbox.Accepted || d.FinishedAt != nil {
		return nil
	}
	reason := d.Reason
	if ev.Finding == outbox.Different {
		reason = "The cluster says that " + ev.Runs + " runs, which is not what was asked for."
	}
	return s.store.reported(tx, d, ev.Runs, reason)
}
