package payments

import (
	"time"

	"github.com/einmal/einmal/pkg/idempotency/idemhttp"
	"github.com/einmal/einmal/pkg/money"
)

// Order is what is to be paid: the caller's own name for it, how much, and to whom.
type Order struct {
	AccountID        string
	ID               string // the caller's
	Position         string // ord_…: where lists show it
	Amount           money.Amount
	Payee            string
	InvoiceReference *string
	Version          int64 // rises when its content changes
	Frozen           bool  // a payment refers to it: its content stays
	CreatedAt        time.Time
	UpdatedAt        time.Time

	// The one payment that has not come to nothing, if there is one.
	PaymentID    string
	PaymentState PaymentState
}

// OrderState says whether an order can be paid.
type OrderState string

const (
	OrderOpen OrderState = "open" // it can
	OrderBusy OrderState = "busy" // a payment of it is live, and one whose outcome is unknown is
	OrderPaid OrderState = "paid" // for ever: a refund does not reopen it
)

var orderStates = []OrderState{OrderOpen, OrderBusy, OrderPaid}

// State follows from the order's payments.
func (o Order) State() OrderState {
	switch o.PaymentState {
	case "":
		return OrderOpen
	case Captured:
		return OrderPaid
	}
	return OrderBusy
}

// says reports whether an order has the content that a command asks for.
func (o Order) says(command *putOrder) bool {
	sameReference := (o.InvoiceReference == nil) == (command.InvoiceReference == nil) &&
		(o.InvoiceReference == nil || *o.InvoiceReference == *command.InvoiceReference)
	return o.Amount == command.amount && o.Payee == command.Payee && sameReference
}

// with is the order with the content that a command asks for.
func (o Order) with(command *putOrder, now time.Time) Order {
	o.Amount, o.Payee, o.InvoiceReference = command.amount, command.Payee, command.InvoiceReference
	o.Version++
	o.UpdatedAt = now
	return o
}

func orderHref(id string) string { return "/v1/orders/" + id }

// orderResource is an order as clients see it.
type orderResource struct {
	ID               string        `json:"id"`
	Amount           string        `json:"amount"`
	AmountMinor      int64         `json:"amount_minor"`
	Currency         string        `json:"currency"`
	Payee            string        `json:"payee"`
	InvoiceReference *string       `json:"invoice_reference,omitzero"`
	State            OrderState    `json:"state"`
	PaymentID        string        `json:"payment_id,omitzero"`
	Version          int64         `json:"version"`
	CreatedAt        idemhttp.Time `json:"created_at"`
	UpdatedAt        idemhttp.Time `json:"updated_at"`
}

func (o Order) resource() orderResource {
	return orderResource{
		ID: o.ID, Amount: o.Amount.String(), AmountMinor: o.Amount.Minor, Currency: o.Amount.Currency.String(),
		Payee: o.Payee, InvoiceReference: o.InvoiceReference, State: o.State(), PaymentID: o.PaymentID, Version: o.Version,
		CreatedAt: idemhttp.Time(o.CreatedAt), UpdatedAt: idemhttp.Time(o.UpdatedAt),
	}
}

// orderPut is the answer to a PUT: the order, and whether it is another one than before.
type orderPut struct {
	orderResource
	Changed bool `json:"changed"`
}
