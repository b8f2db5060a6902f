package deployments

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/idempotency/idemhttp"
	"github.com/einmal/einmal/pkg/outbox"
	"github.com/einmal/einmal/pkg/problem"
)

// commands executes commands. It has no way to call anything outside the database: the outbox does that, after the commit.
type commands struct {
	exec   *idempotency.Executor
	store  store
	outbox *outbox.Outbox
}

// deploy accepts a deployment: it holds its environment from then on, or waits for it, or is refused.
func (cs commands) deploy(ctx context.Context, req idempotency.Request, command *createDeployment) (idempotency.Result, error) {
	return cs.do(ctx, req, func(tx database.Tx, op idempotency.Operation) (idempotency.Answer, error) {
		env, err := cs.store.enter(tx, op.AccountID, command.Environment)
		if errors.Is(err, errNotFound) {
			return idempotency.Answer{}, noEnvironment()
		}
		if err != nil {
			return idempotency.Answer{}, err
		}
		d := newDeployment(op, command.Service, env, command.Artifact, tx.Now)
		d.ExpectedVersion, d.Queues = command.ExpectedVersion, command.WhenLocked == queue
		switch {
		case env.locked() && d.Queues:
			d.Waiting = !env.ApprovalRequired // else it comes to the queue when a person has said yes
		case env.locked():
			return idempotency.Answer{}, cs.refuseLocked(tx, env)
		case !d.fits(env):
			return idempotency.Answer{}, idemhttp.RefusalFinal(op, problem.New(problem.EnvironmentChanged, changedReason(d, env)))
		}
		return cs.accept(tx, op, d, env.ApprovalRequired)
	})
}

// do executes a command and, if it has an effect, gets it on its way.
func (cs commands) do(ctx context.Context, req idempotency.Request, apply idempotency.Apply) (idempotency.Result, error) {
	result, err := cs.exec.Do(ctx, req, apply)
	if result.Outcome == idempotency.OutcomeAccepted || result.Outcome == idempotency.OutcomeExecuted {
		cs.outbox.Nudge()
	}
	return result, err
}

// accept writes a deployment together with its effect, which is due at once if it holds its environment. If a person is to be asked, it
// holds nothing before they have said yes.
func (cs commands) accept(tx database.Tx, op idempotency.Operation, d Deployment, asks bool) (idempotency.Answer, error) {
	command, err := idemhttp.Marshal(rolloutCommand{Account: d.AccountID, Environment: d.Environment, Service: d.Service, Artifact: d.Artifact})
	if err != nil {
		return idempotency.Answer{}, err
	}
	if err := cs.store.insert(tx, d); err != nil {
		return idempotency.Answer{}, err
	}
	if asks {
		live, err := cs.store.release(tx, d.AccountID, d.Environment, d.Service)
		if err != nil && !errors.Is(err, errNotFound) {
			return idempotency.Answer{}, err
		}
		op.State = idempotency.AwaitingApproval
		return idempotency.Answer{State: op.State, Resource: about(d.ID)}, cs.outbox.Ask(tx, op, clusterName, "rollout", command, askToDeploy(d, live))
	}
	enqueue := cs.outbox.Wait
	if !d.Waiting {
		if err := cs.store.hold(tx, d); err != nil {
			return idempotency.Answer{}, err
		}
		enqueue = cs.outbox.Enqueue
	}
	op.State = idempotency.Queued
	return idempotency.Answer{State: op.State, Resource: about(d.ID)}, enqueue(tx, op, clusterName, "rollout", command)
}

// refuseLocked refuses a deployment for now, and says who holds the environment.
func (cs commands) refuseLocked(tx database.Tx, env Environment) error {
	holder, err := cs.store.byID(tx.DB, env.AccountID, env.Holder)
	if err != nil {
		return fmt.Errorf("read holder: %w", err)
	}
	p := problem.New(problem.EnvironmentLocked, fmt.Sprintf("Deployment %s (operation %s) holds %s: its %s of %s is %s.",
		holder.ID, holder.OperationID, env.Name, holder.Kind, holder.Service, holder.State))
	p.Holder = &problem.Holder{DeploymentID: holder.ID, OperationID: holder.OperationID}
	return idemhttp.RefusalForNow(p)
}

// changedReason says why a plan does not hold any more.
func changedReason(d Deployment, env Environment) string {
	if d.fits(env) {
		return fmt.Sprintf("Deployments to %s need a person's yes since this one came to wait, and nobody was asked about it. If it is still wanted, it is a new deployment and a question.", env.Name)
	}
	return fmt.Sprintf("The plan was for version %d of %s, which is at version %d.", *d.ExpectedVersion, env.Name, env.Version)
}

// answer is a success about a deployment.
func answer(status int, d Deployment) (idempotency.Answer, error) {
	done, err := idemhttp.Success(status, d.resource())
	done.Location, done.Resource = href(d.ID), about(d.ID)
	return done, err
}

func noEnvironment() *problem.Problem {
	return problem.New(problem.NotFound, "This account has no such environment. An operator declares one with PUT /v1/environments/{name}.")
}

func noDeployment() *problem.Problem {
	return problem.New(problem.NotFound, "This account has no such deployment.")
}

// aboutDeployment reads the deployment that a command in its path names.
func (cs commands) aboutDeployment(tx database.Tx, account, id string) (Deployment, error) {
	d, err := cs.store.byID(tx.DB, account, id)
	if errors.Is(err, errNotFound) {
		return d, noDeployment()
	}
	return d, err
}

// environmentAnswer is a success about an environment.
func environmentAnswer(status int, env Environment) (idempotency.Answer, error) {
	done, err := idemhttp.Success(status, env.resource())
	done.Location = environmentHref(env.Name)
	done.Resource = idempotency.Resource{Type: "environment", ID: env.Name, Href: done.Location}
	return done, err
}

// statusOf is 201 for what was made, 200 for what was changed.
func statusOf(made bool) int {
	if made {
		return http.StatusCreated
	}
	return http.StatusOK
}
