package payments

import (
	"context"
	"errors"
	"fmt"

	"github.com/einmal/einmal/pkg/approval"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/problem"
)

// createPayment accepts the authorising of an order's amount.
func (cs commands) createPayment(ctx context.Context, req idempotency.Request, command *createPayment) (idempotency.Result, error) {
	return cs.accept(ctx, req, func(tx database.Tx, op idempotency.Operation) (idempotency.Answer, error) {
		payment := newPayment(op.AccountID, idempotency.NewID("pay", tx.Now), op.ID, command, tx.Now)
		asOrdered, err := cs.store.freezeOrder(tx, op.AccountID, command.OrderID, command.amount)
		if err != nil {
			return idempotency.Answer{}, err
		}
		if !asOrdered {
			return idempotency.Answer{}, cs.notAsOrdered(tx, op, command)
		}
		inserted, err := cs.store.insertPayment(tx, payment)
		if err != nil {
			return idempotency.Answer{}, err
		}
		if !inserted {
			return idempotency.Answer{}, cs.notPayable(tx, op, command.OrderID)
		}
		var q *approval.Question
		if atLeast(payment.Amount, cs.threshold) {
			order, err := cs.store.order(tx.DB, op.AccountID, command.OrderID)
			if err != nil {
				return idempotency.Answer{}, err
			}
			q = askToPay(payment, order)
		}
		return cs.enqueue(tx, op, aboutPayment(payment.ID), targetAuthorize, effectAuthorize, authorizeCommand{
			PaymentID: payment.ID, OrderID: payment.OrderID, Account: op.AccountID, PaymentMethod: cs.paymentMethod,
			AmountMinor: payment.Amount.Minor, Currency: payment.Amount.Currency.String(),
		}, q)
	})
}

// notAsOrdered says why an order can't be paid with this amount.
func (cs commands) notAsOrdered(tx database.Tx, op idempotency.Operation, command *createPayment) error {
	order, err := cs.store.order(tx.DB, op.AccountID, command.OrderID)
	switch {
	case errors.Is(err, errNotFound):
		return noOrder()
	case err != nil:
		return err
	case order.Amount == command.amount: // it says so since we looked
		return refuseForNow(problem.OrderBusy, "Order "+command.OrderID+" is being changed at this moment.")
	}
	return refuse(op, problem.OrderMismatch, fmt.Sprintf("Order %s says %s %s, and this payment %s %s.", order.ID,
		order.Amount, order.Amount.Currency, command.amount, command.amount.Currency))
}

// notPayable says why an order takes no other payment.
func (cs commands) notPayable(tx database.Tx, op idempotency.Operation, orderID string) error {
	live, err := cs.store.liveOf(tx, op.AccountID, orderID)
	switch {
	case errors.Is(err, errNotFound): // it has ended since we met it
		return refuseForNow(problem.OrderBusy, "Another payment of order "+orderID+" has ended at this moment.")
	case err != nil:
		return err
	case live.State == Captured:
		return refuse(op, problem.OrderNotPayable, "Order "+orderID+" is paid, by payment "+live.ID+".")
	}
	return refuseForNow(problem.OrderBusy, fmt.Sprintf("Payment %s of order %s is %s; it counts until it is known to have come to nothing.", live.ID, orderID, live.State))
}

// capturePayment accepts the capture of a payment.
func (cs commands) capturePayment(ctx context.Context, req idempotency.Request, id string, command *capturePayment) (idempotency.Result, error) {
	return cs.change(ctx, req, id, command.amount.Minor, func(tx database.Tx, op idempotency.Operation, p Payment) (idempotency.Answer, error) {
		return cs.enqueue(tx, op, aboutPayment(p.ID), targetCapture, effectCapture, captureCommand{
			PaymentID: p.ID, Reference: p.Reference, AmountMinor: command.amount.Minor, Currency: command.amount.Currency.String(),
		}, nil)
	}, func(op idempotency.Operation, p Payment) error {
		if command.amount.Minor > p.Amount.Minor {
			return refuse(op, problem.CaptureExceedsAuthorized, fmt.Sprintf("Authorized are %s %s.", p.Amount, p.Amount.Currency))
		}
		return nil
	}, problem.PaymentNotCapturable)
}

// cancelPayment accepts the cancel of a payment.
func (cs commands) cancelPayment(ctx context.Context, req idempotency.Request, id string) (idempotency.Result, error) {
	return cs.change(ctx, req, id, 0, func(tx database.Tx, op idempotency.Operation, p Payment) (idempotency.Answer, error) {
		return cs.enqueue(tx, op, aboutPayment(p.ID), targetCancel, effectCancel, cancelCommand{PaymentID: p.ID, Reference: p.Reference}, nil)
	}, func(idempotency.Operation, Payment) error { return nil }, problem.PaymentNotCancelable)
}

// change accepts a capture or a cancel: one at a time, of what is authorized. limits says what of the command a payment does not
// allow; never is the refusal of a payment that is past both.
func (cs commands) change(ctx context.Context, req idempotency.Request, id string, least int64,
	enqueue func(tx database.Tx, op idempotency.Operation, p Payment) (idempotency.Answer, error),
	limits func(op idempotency.Operation, p Payment) error, never problem.Code,
) (idempotency.Result, error) {
	return cs.accept(ctx, req, func(tx database.Tx, op idempotency.Operation) (idempotency.Answer, error) {
		begun, err := cs.store.beginChange(tx, op.AccountID, id, op.ID, least)
		if err != nil {
			return idempotency.Answer{}, err
		}
		payment, err := cs.store.payment(tx.DB, op.AccountID, id)
		switch {
		case errors.Is(err, errNotFound):
			return idempotency.Answer{}, noPayment()
		case err != nil:
			return idempotency.Answer{}, err
		case begun:
			return enqueue(tx, op, payment)
		case payment.State == Captured, payment.State == Canceled, payment.State == Failed:
			return idempotency.Answer{}, refuse(op, never, fmt.Sprintf("Payment %s is %s.", id, payment.State))
		}
		if err := limits(op, payment); err != nil {
			return idempotency.Answer{}, err
		}
		return idempotency.Answer{}, refuseForNow(problem.PaymentBusy, busy(payment))
	})
}

// busy says what a payment is waiting for.
func busy(p Payment) string {
	switch {
	case p.OpenOperationID != "":
		return fmt.Sprintf("Operation %s changes payment %s, and has not ended.", p.OpenOperationID, p.ID)
	case p.undecided():
		return fmt.Sprintf("Payment %s is %s; whether it is authorized is still to be found out.", p.ID, p.State)
	}
	return fmt.Sprintf("Payment %s is being changed at this moment.", p.ID)
}
