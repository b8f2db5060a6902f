package payments

import (
	"time"

	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/idempotency/idemhttp"
	"github.com/einmal/einmal/pkg/money"
)

// Refund is money that goes back to where a payment came from. What it takes is reserved at the payment from when it is accepted,
// and stays so while nobody knows how it ended.
type Refund struct {
	AccountID   string
	ID          string // rfd_…
	PaymentID   string
	Number      int64 // of the payment's refunds, from 1
	Amount      money.Amount
	Reason      string
	Reference   string
	OperationID string
	State       idempotency.State // its operation's
	CreatedAt   time.Time
}

// newRefund is the refund that a command asks for, as it is at its beginning.
func newRefund(account, id, operationID string, of Payment, command *createRefund, now time.Time) Refund {
	return Refund{
		AccountID: account, ID: id, PaymentID: of.ID, Number: of.Refunds, Amount: command.amount, Reason: command.Reason,
		OperationID: operationID, State: idempotency.Queued, CreatedAt: now,
	}
}

func refundHref(paymentID, id string) string { return paymentHref(paymentID) + "/refunds/" + id }

// refundResource is a refund as clients see it.
type refundResource struct {
	ID          string            `json:"id"`
	PaymentID   string            `json:"payment_id"`
	Amount      string            `json:"amount"`
	AmountMinor int64             `json:"amount_minor"`
	Currency    string            `json:"currency"`
	Reason      string            `json:"reason"`
	State       idempotency.State `json:"state"`
	Reference   string            `json:"reference,omitzero"`
	OperationID string            `json:"operation_id"`
	CreatedAt   idemhttp.Time     `json:"created_at"`
}

func (r Refund) resource() refundResource {
	return refundResource{
		ID: r.ID, PaymentID: r.PaymentID, Amount: r.Amount.String(), AmountMinor: r.Amount.Minor, Currency: r.Amount.Currency.String(),
		Reason: r.Reason, State: r.State, Reference: r.Reference, OperationID: r.OperationID, CreatedAt: idemhttp.Time(r.CreatedAt),
	}
}
