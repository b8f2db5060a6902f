package payments

import (
	"time"

	"github.com/einmal/einmal/pkg/idempotency/idemhttp"
	"github.com/einmal/einmal/pkg/money"
)

// Payment is an authorisation of an order's amount, and what became of it.
type Payment struct {
	AccountID       string
	ID              string // pay_…
	OrderID         string
	Amount          money.Amount // its currency never changes
	State           PaymentState
	CapturedMinor   int64
	ReservedMinor   int64 // of refunds whose end is not known
	RefundedMinor   int64 // of refunds that are done
	Refunds         int64 // the number of the last refund
	Reference       string
	OperationID     string // that authorises it
	OpenOperationID string // the capture or cancel under way; empty: none
	CreatedAt       time.Time
	UpdatedAt       time.Time
}

// PaymentState says where a payment stands.
type PaymentState string

const (
	Pending    PaymentState = "pending"    // its authorising is accepted, and has not ended
	Authorized PaymentState = "authorized" // the money is held
	Captured   PaymentState = "captured"   // it is ours; what was held beyond that is released
	Canceled   PaymentState = "canceled"   // the hold is gone, or was never wanted after all
	Failed     PaymentState = "failed"     // the provider declined

	// Unknown: nobody can say yet whether its authorising has happened. It is stored as pending; the effect knows.
	Unknown PaymentState = "unknown"
)

var paymentStates = []PaymentState{Pending, Authorized, Captured, Canceled, Failed, Unknown}

// newPayment is the payment that a command asks for, as it is at its beginning.
func newPayment(account, id, operationID string, command *createPayment, now time.Time) Payment {
	return Payment{
		AccountID: account, ID: id, OrderID: command.OrderID, Amount: command.amount, State: Pending, OperationID: operationID,
		CreatedAt: now, UpdatedAt: now,
	}
}

// undecided reports whether a payment's state is still to be found out, by its authorising or by a capture or cancel under way.
func (p Payment) undecided() bool {
	return p.State == Pending || p.State == Unknown || p.OpenOperationID != ""
}

// Refundable is the most that can be refunded now.
func (p Payment) Refundable() money.Amount {
	return money.Amount{Minor: p.CapturedMinor - p.ReservedMinor - p.RefundedMinor, Currency: p.Amount.Currency}
}

func paymentHref(id string) string { return "/v1/payments/" + id }

// paymentResource is a payment as clients see it.
type paymentResource struct {
	ID                  string        `json:"id"`
	OrderID             string        `json:"order_id"`
	Amount              string        `json:"amount"`
	AmountMinor         int64         `json:"amount_minor"`
	Currency            string        `json:"currency"`
	State               PaymentState  `json:"state"`
	CapturedMinor       int64         `json:"captured_minor"`
	RefundReservedMinor int64         `json:"refund_reserved_minor"`
	RefundedMinor       int64         `json:"refunded_minor"`
	RefundableMinor     int64         `json:"refundable_minor"`
	Reference           string        `json:"reference,omitzero"`
	OperationID         string        `json:"operation_id"`
	OpenOperationID     string        `json:"open_operation_id,omitzero"`
	CreatedAt           idemhttp.Time `json:"created_at"`
	UpdatedAt           idemhttp.Time `json:"updated_at"`
}

func (p Payment) resource() paymentResource {
	return paymentResource{
		ID: p.ID, OrderID: p.OrderID, Amount: p.Amount.String(), AmountMinor: p.Amount.Minor, Currency: p.Amount.Currency.String(),
		State: p.State, CapturedMinor: p.CapturedMinor, RefundReservedMinor: p.ReservedMinor, RefundedMinor: p.RefundedMinor,
		RefundableMinor: p.Refundable().Minor, Reference: p.Reference, OperationID: p.OperationID, OpenOperationID: p.OpenOperationID,
		CreatedAt: idemhttp.Time(p.CreatedAt), UpdatedAt: idemhttp.Time(p.UpdatedAt),
	}
}
