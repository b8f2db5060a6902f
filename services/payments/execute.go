package payments

import (
	"context"
	"net/http"

	"github.com/einmal/einmal/pkg/approval"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/idempotency/idemhttp"
	"github.com/einmal/einmal/pkg/outbox"
	"github.com/einmal/einmal/pkg/problem"
)

// commands executes commands. It has no way to call anything outside the database: the outbox does that, after the commit.
type commands struct {
	exec          *idempotency.Executor
	store         store
	outbox        *outbox.Outbox
	paymentMethod string
	threshold     int64 // in major units, from which on a person is asked about a payment
}

// accept executes a command that has an effect outside.
func (cs commands) accept(ctx context.Context, req idempotency.Request, apply idempotency.Apply) (idempotency.Result, error) {
	result, err := cs.exec.Do(ctx, req, apply)
	if result.Outcome == idempotency.OutcomeAccepted {
		cs.outbox.Nudge()
	}
	return result, err
}

// enqueue writes the effect of an operation, and accepts it. With a question it waits for a person's yes.
func (cs commands) enqueue(tx database.Tx, op idempotency.Operation, about idempotency.Resource, target, name string, command any, q *approval.Question) (idempotency.Answer, error) {
	text, err := idemhttp.Marshal(command)
	if err != nil {
		return idempotency.Answer{}, err
	}
	if q != nil {
		op.State = idempotency.AwaitingApproval
		return idempotency.Answer{State: op.State, Resource: about}, cs.outbox.Ask(tx, op, target, name, text, *q)
	}
	op.State = idempotency.Queued
	return idempotency.Answer{State: op.State, Resource: about}, cs.outbox.Enqueue(tx, op, target, name, text)
}

// refuse refuses for good.
func refuse(op idempotency.Operation, code problem.Code, detail string) error {
	return idemhttp.RefusalFinal(op, problem.New(code, detail))
}

// refuseForNow refuses without storing anything: the same key may be tried later.
func refuseForNow(code problem.Code, detail string) error {
	return idemhttp.RefusalForNow(problem.New(code, detail))
}

// answer is a success about a resource.
func answer(status int, resource idempotency.Resource, body any) (idempotency.Answer, error) {
	done, err := idemhttp.Success(status, body)
	done.Location, done.Resource = resource.Href, resource
	return done, err
}

// answerPayment is a success about a payment that there was before.
func answerPayment(p Payment) (idempotency.Answer, error) {
	return answer(http.StatusOK, aboutPayment(p.ID), p.resource())
}

func aboutOrder(id string) idempotency.Resource {
	return idempotency.Resource{Type: "order", ID: id, Href: orderHref(id)}
}

func aboutPayment(id string) idempotency.Resource {
	return idempotency.Resource{Type: "payment", ID: id, Href: paymentHref(id)}
}

func aboutRefund(paymentID, id string) idempotency.Resource {
	return idempotency.Resource{Type: "refund", ID: id, Href: refundHref(paymentID, id)}
}
