package payments

import (
	"errors"
	"fmt"

	"github.com/stripe/stripe-go/v82"

	"github.com/einmal/einmal/pkg/catalogue"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

// considerRefund says what a webhook about a refund of a payment means.
func (h hook) considerRefund(tx database.Tx, p Payment, t told) (disposition, error) {
	refund, err := h.store.refund(tx.DB, p.AccountID, t.RefundID)
	switch {
	case errors.Is(err, errNotFound), err == nil && refund.PaymentID != p.ID:
		return isUnmatched, h.keep(tx, t)
	case err != nil:
		return "", err
	case !refund.State.Final():
		return h.reconcile(tx, p.AccountID, refund.OperationID, t)
	}
	came := t.Status == string(stripe.RefundStatusSucceeded)
	gone := t.Status == string(stripe.RefundStatusFailed) || t.Status == string(stripe.RefundStatusCanceled)
	switch {
	case refund.Reference != "" && refund.Reference != t.ID:
		return h.contradict(tx, p.AccountID, catalogue.RefundCreate, refund.OperationID, fmt.Sprintf("%s about %s, although the refund is known as %s", t.Type, t.ID, refund.Reference))
	case !came && !gone: // it was on its way once, and this is late
	case came != (refund.State == idempotency.Succeeded): // a bank can give a refund back that had succeeded
		return h.contradict(tx, p.AccountID, catalogue.RefundCreate, refund.OperationID, fmt.Sprintf("%s about %s, which is %s, although the refund has %s", t.Type, t.ID, t.Status, refund.State))
	}
	return saysNothing, nil
}
