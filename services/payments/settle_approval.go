package payments

import (
	"fmt"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/outbox"
)

// orderShown is the version of the order that a payment is of, which stays what it is from when a payment refers to it.
func (s settler) orderShown(tx database.Tx, e outbox.Effect) (string, error) {
	c, err := commandOf[authorizeCommand](e)
	if err != nil {
		return "", err
	}
	order, err := s.store.order(tx.DB, e.AccountID, c.OrderID)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("order %s, version %d: %s %s", order.ID, order.Version, order.Amount, order.Amount.Currency), nil
}

// refundsShown is how much of a payment was captured, and how much of that others have taken. Whoever decides about refunds of one
// payment does so in turn.
func (s settler) refundsShown(tx database.Tx, e outbox.Effect) (string, error) {
	c, err := commandOf[refundCommand](e)
	if err != nil {
		return "", err
	}
	if err := s.store.inTurn(tx, e.AccountID, c.PaymentID); err != nil {
		return "", err
	}
	payment, err := s.store.payment(tx.DB, e.AccountID, c.PaymentID)
	if err != nil {
		return "", err
	}
	others, err := s.store.letGo(tx, e.AccountID, c.PaymentID, c.RefundID)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("payment %s: captured %d, other refunds %d", payment.ID, payment.CapturedMinor, others), nil
}
