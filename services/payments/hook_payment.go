package payments

import (
	"fmt"

	"github.com/einmal/einmal/pkg/catalogue"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

// considerPayment says what a webhook about a payment means.
func (h hook) considerPayment(tx database.Tx, p Payment, t told) (disposition, error) {
	against := func() (disposition, error) {
		return h.contradict(tx, p.AccountID, catalogue.PaymentCreate, p.OperationID, fmt.Sprintf("%s about %s, although the payment is %s", t.Type, t.ID, p.State))
	}
	moves := t.Type == "payment_intent.amount_capturable_updated" || t.Type == "payment_intent.succeeded"
	switch {
	case p.Reference != "" && p.Reference != t.ID && moves:
		return h.contradict(tx, p.AccountID, catalogue.PaymentCreate, p.OperationID, fmt.Sprintf("%s about %s, although the payment is known as %s", t.Type, t.ID, p.Reference))
	case p.Reference != "" && p.Reference != t.ID:
		return saysNothing, nil // one of those that were made and never confirmed
	case p.State == Pending || p.State == Unknown:
		return h.reconcile(tx, p.AccountID, p.OperationID, t)
	case p.OpenOperationID != "":
		return h.reconcile(tx, p.AccountID, p.OpenOperationID, t)
	}
	switch t.Type {
	case "payment_intent.amount_capturable_updated":
		// What was authorised and then canceled or captured once was so. What has come to nothing never was.
		op, err := h.exec.Row(tx, p.AccountID, p.OperationID)
		if err != nil || op.State == idempotency.Succeeded {
			return saysNothing, err
		}
		return against()
	case "payment_intent.succeeded":
		if p.State != Captured || t.Minor != p.CapturedMinor {
			return against()
		}
	case "payment_intent.canceled":
		if p.State == Authorized || p.State == Captured {
			return against()
		}
	}
	return saysNothing, nil // a no that comes late has nothing against a yes
}
