package payments

import (
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/idempotency/idemhttp"
	"github.com/einmal/einmal/pkg/outbox"
	"github.com/einmal/einmal/pkg/problem"
)

// settler writes down how effects ended: at the payment or refund, and as the operation's final answer. Each of its methods is called
// once for an effect, in the transaction that ends it.
type settler struct {
	store store
}

// authorized settles an effect of payment.create.
func (s settler) authorized(tx database.Tx, e outbox.Effect, end outbox.End) (idempotency.Answer, error) {
	c, err := commandOf[authorizeCommand](e)
	if err != nil {
		return idempotency.Answer{}, err
	}
	state := Authorized
	switch {
	case end.State == idempotency.Succeeded && e.Reference == "": // a person says so
		return idempotency.Answer{}, problem.Invalid(problem.Violation{
			Pointer: "/reference", Detail: "must be the provider's name for the payment: without it nobody can capture, cancel or refund it",
		})
	case end.State == idempotency.Succeeded && end.Evidence.Shows != "":
		return idempotency.Answer{}, problem.Invalid(problem.Violation{
			Pointer: "/state", Detail: "can't be succeeded: the provider has authorized " + end.Evidence.Shows + " (minor units), which is not what the order says. Void that at the provider, and say failed",
		})
	case end.State == idempotency.Failed:
		state = Failed
	case end.State == idempotency.Canceled:
		state = Canceled
	}
	if err := s.store.endAuthorizing(tx, e.AccountID, c.PaymentID, state, e.Reference); err != nil {
		return idempotency.Answer{}, err
	}
	if state != Authorized {
		return idemhttp.Failure(e.OperationID, end.State, failure(end, problem.PaymentDeclined)), nil
	}
	payment, err := s.store.payment(tx.DB, e.AccountID, c.PaymentID)
	if err != nil {
		return idempotency.Answer{}, err
	}
	return answer(http.StatusCreated, aboutPayment(payment.ID), payment.resource())
}

// captured settles an effect of payment.capture. The provider has captured what was asked for, or another amount of which a person says
// that it counts: then that is what is booked, and can be refunded.
func (s settler) captured(tx database.Tx, e outbox.Effect, end outbox.End) (idempotency.Answer, error) {
	c, err := commandOf[captureCommand](e)
	if err != nil {
		return idempotency.Answer{}, err
	}
	captured := c.AmountMinor
	if shown, seen := readShown(end.Evidence.Shows); seen && end.State == idempotency.Succeeded {
		payment, err := s.store.payment(tx.DB, e.AccountID, c.PaymentID)
		if err != nil {
			return idempotency.Answer{}, err
		}
		if !shown.is(payment.Amount.Currency) || shown.minor < 1 || shown.minor > payment.Amount.Minor {
			return idempotency.Answer{}, notBooked(shown, "captured", payment.Amount.Minor)
		}
		captured = shown.minor
	}
	return s.changed(tx, e, end, c.PaymentID, Captured, captured, problem.PaymentNotCapturable)
}

// canceled settles an effect of payment.cancel.
func (s settler) canceled(tx database.Tx, e outbox.Effect, end outbox.End) (idempotency.Answer, error) {
	c, err := commandOf[cancelCommand](e)
	if err != nil {
		return idempotency.Answer{}, err
	}
	return s.changed(tx, e, end, c.PaymentID, Canceled, 0, problem.PaymentNotCancelable)
}

// changed settles a change of an authorized payment, which stays authorized if the change has come to nothing.
func (s settler) changed(tx database.Tx, e outbox.Effect, end outbox.End, paymentID string, state PaymentState, captured int64, refused problem.Code) (idempotency.Answer, error) {
	if end.State != idempotency.Succeeded {
		err := s.store.endChange(tx, e.AccountID, paymentID, e.OperationID, Authorized, 0)
		return idemhttp.Failure(e.OperationID, end.State, failure(end, refused)), err
	}
	if err := s.store.endChange(tx, e.AccountID, paymentID, e.OperationID, state, captured); err != nil {
		return idempotency.Answer{}, err
	}
	payment, err := s.store.payment(tx.DB, e.AccountID, paymentID)
	if err != nil {
		return idempotency.Answer{}, err
	}
	return answerPayment(payment)
}

// refunded settles an effect of refund.create: what it took is refunded, or there for another.
func (s settler) refunded(tx database.Tx, e outbox.Effect, end outbox.End) (idempotency.Answer, error) {
	c, err := commandOf[refundCommand](e)
	if err != nil {
		return idempotency.Answer{}, err
	}
	done, refunded := end.State == idempotency.Succeeded, int64(0)
	if done {
		refunded = c.AmountMinor
	}
	if shown, seen := readShown(end.Evidence.Shows); seen && done { // a person says that another amount counts
		payment, err := s.store.payment(tx.DB, e.AccountID, c.PaymentID)
		if err != nil {
			return idempotency.Answer{}, err
		}
		most := payment.CapturedMinor - payment.ReservedMinor - payment.RefundedMinor + c.AmountMinor
		if !shown.is(payment.Amount.Currency) || shown.minor < 1 || shown.minor > most {
			return idempotency.Answer{}, notBooked(shown, "refunded", most)
		}
		if refunded = shown.minor; refunded != c.AmountMinor {
			if err := s.store.amendRefund(tx, e.AccountID, c.RefundID, refunded); err != nil {
				return idempotency.Answer{}, err
			}
		}
	}
	if err := s.store.endReservation(tx, e.AccountID, c.PaymentID, c.AmountMinor, refunded); err != nil {
		return idempotency.Answer{}, err
	}
	if err := s.store.noteRefund(tx, e.AccountID, c.RefundID, e.Reference); err != nil {
		return idempotency.Answer{}, err
	}
	if !done {
		return idemhttp.Failure(e.OperationID, end.State, failure(end, problem.RefundDeclined)), nil
	}
	refund, err := s.store.refund(tx.DB, e.AccountID, c.RefundID)
	if err != nil {
		return idempotency.Answer{}, err
	}
	return answer(http.StatusCreated, aboutRefund(refund.PaymentID, refund.ID), refund.resource())
}

// notBooked refuses a person's yes to an amount that the payment can't have.
func notBooked(shown amountShown, what string, most int64) *problem.Problem {
	return problem.Invalid(problem.Violation{
		Pointer: "/state", Detail: fmt.Sprintf("can't be succeeded: the provider has %s %s (minor units), and no more than %d of this payment can be. Set that right at the provider first", what, shown, most),
	})
}

// commandOf reads the command of an effect that this service has written.
func commandOf[C any](e outbox.Effect) (command C, err error) {
	if err := json.Unmarshal(e.Command, &command); err != nil {
		return command, fmt.Errorf("read command of %s: %w", e.ID, err)
	}
	return command, nil
}

// failure says why an effect did not happen. declined is the problem of a verdict that the provider keeps.
func failure(end outbox.End, declined problem.Code) *problem.Problem {
	if end.Unapproved() {
		return problem.New(problem.Code(end.Reason), end.Evidence.Says+" No money has moved.")
	}
	switch end.Reason {
	case outbox.ByVerdict:
		return problem.New(declined, "The provider has declined: "+end.Evidence.Says+".")
	case outbox.ByRefusal:
		return problem.New(problem.EffectRefused, "The provider does not take this: it "+end.Evidence.Says+".")
	case outbox.ByPerson:
		if end.State == idempotency.Canceled {
			return problem.New(problem.OperationCanceled, "The operation was withdrawn; no money has moved.")
		}
		return problem.New(problem.EffectRefused, "A person has found that it has not happened at the provider.")
	case outbox.ByDeadline:
		return problem.New(problem.DeadlineExceeded, "It did not come about before the deadline, and is closed at the provider where it had begun; no money has moved.")
	}
	if end.State == idempotency.Canceled {
		return problem.New(problem.OperationCanceled, "The operation was withdrawn, and closed at the provider; nothing is held.")
	}
	return problem.New(problem.AttemptsExhausted, "It did not come about within the attempts, and is closed at the provider where it had begun: "+end.Evidence.Says+".")
}
