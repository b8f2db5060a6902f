package payments

import (
	"context"
	"errors"
	"fmt"

	"github.com/einmal/einmal/pkg/approval"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/idempotency/idemhttp"
	"github.com/einmal/einmal/pkg/problem"
)

// createRefund accepts a refund, for which the amount is reserved at the payment.
func (cs commands) createRefund(ctx context.Context, req idempotency.Request, paymentID string, command *createRefund) (idempotency.Result, error) {
	return cs.accept(ctx, req, func(tx database.Tx, op idempotency.Operation) (idempotency.Answer, error) {
		reserved, err := cs.store.reserve(tx, op.AccountID, paymentID, command.amount.Minor)
		if err != nil {
			return idempotency.Answer{}, err
		}
		payment, err := cs.store.payment(tx.DB, op.AccountID, paymentID)
		switch {
		case errors.Is(err, errNotFound):
			return idempotency.Answer{}, noPayment()
		case err != nil:
			return idempotency.Answer{}, err
		case !reserved:
			return idempotency.Answer{}, exceeds(op, payment)
		}
		refund := newRefund(op.AccountID, idempotency.NewID("rfd", tx.Now), op.ID, payment, command, tx.Now)
		if err := cs.store.insertRefund(tx, refund); err != nil {
			return idempotency.Answer{}, err
		}
		// What is reserved or refunded beside this one belongs to another that has neither failed nor been canceled; of two first ones at
		// the same time, reserve has let the one come after the other.
		var q *approval.Question
		if payment.ReservedMinor+payment.RefundedMinor > refund.Amount.Minor {
			order, err := cs.store.order(tx.DB, op.AccountID, payment.OrderID)
			if err != nil {
				return idempotency.Answer{}, err
			}
			q = askToRefund(refund, payment, order)
		}
		return cs.enqueue(tx, op, aboutRefund(paymentID, refund.ID), targetRefund, effectRefund, refundCommand{
			RefundID: refund.ID, PaymentID: paymentID, Account: op.AccountID, Reference: payment.Reference,
			AmountMinor: refund.Amount.Minor, Currency: refund.Amount.Currency.String(),
		}, q)
	})
}

// exceeds refuses a refund of more than is left, which is nothing unless the payment is captured.
func exceeds(op idempotency.Operation, p Payment) error {
	left := p.Refundable()
	detail := fmt.Sprintf("Of payment %s, %s %s remain.", p.ID, left, left.Currency)
	if p.State != Captured {
		detail = fmt.Sprintf("Payment %s is %s; only what was captured can be refunded.", p.ID, p.State)
	}
	refusal := problem.New(problem.RefundExceedsRemaining, detail)
	refusal.Remaining = left.String()
	return idemhttp.RefusalFinal(op, refusal)
}
