package deployments

import (
	"context"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

// putEnvironment declares an environment, or says anew whether deployments to it need a person's yes.
func (cs commands) putEnvironment(ctx context.Context, req idempotency.Request, environment string, command *putEnvironment) (idempotency.Result, error) {
	return cs.exec.Do(ctx, req, func(tx database.Tx, op idempotency.Operation) (idempotency.Answer, error) {
		declared, err := cs.store.declare(tx, op.AccountID, environment, *command.ApprovalRequired)
		if err == nil && !declared {
			err = cs.store.protect(tx, op.AccountID, environment, *command.ApprovalRequired)
		}
		if err != nil {
			return idempotency.Answer{}, err
		}
		env, err := cs.store.environment(tx.DB, op.AccountID, environment)
		if err == nil {
			env, err = cs.store.fill(tx.DB, env)
		}
		if err != nil {
			return idempotency.Answer{}, err
		}
		return environmentAnswer(statusOf(declared), env)
	})
}
