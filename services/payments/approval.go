package payments

import (
	"fmt"

	"github.com/einmal/einmal/pkg/approval"
	"github.com/einmal/einmal/pkg/money"
)

// atLeast reports whether an amount comes to so many major units of its currency.
func atLeast(amount money.Amount, major int64) bool {
	unit := int64(1)
	for range amount.Currency.Exponent() {
		unit *= 10
	}
	return amount.Minor/unit >= major
}

// paymentFacts are what exactly will happen, for whoever is asked about a payment.
type paymentFacts struct {
	Payee    string  `json:"payee"`
	Amount   string  `json:"amount"`
	Currency string  `json:"currency"`
	Invoice  *string `json:"invoice,omitzero"`
	Order    string  `json:"order"`
	Payment  string  `json:"payment"`
}

// askToPay asks whether a payment may be authorised.
func askToPay(p Payment, of Order) *approval.Question {
	return &approval.Question{
		Facts: paymentFacts{
			Payee: of.Payee, Amount: p.Amount.String(), Currency: p.Amount.Currency.String(), Invoice: of.InvoiceReference, Order: of.ID, Payment: p.ID,
		},
		Consequence: fmt.Sprintf("%s %s are held at the customer's bank for order %s, to be captured for %s.", p.Amount, p.Amount.Currency, of.ID, of.Payee),
	}
}

// refundFacts are what exactly will happen, for whoever is asked about a refund.
type refundFacts struct {
	paymentFacts
	Reason    string `json:"reason"`
	Captured  string `json:"captured"`
	Others    string `json:"other_refunds"` // done, under way, or asked about
	Remaining string `json:"remaining"`     // after it
}

// askToRefund asks whether a refund may be made that is not the payment's only one. The payment is as it is with it.
func askToRefund(r Refund, p Payment, of Order) *approval.Question {
	in := func(minor int64) money.Amount { return money.Amount{Minor: minor, Currency: p.Amount.Currency} }
	others, left := in(p.ReservedMinor+p.RefundedMinor-r.Amount.Minor), p.Refundable()
	return &approval.Question{
		Facts: refundFacts{
			paymentFacts{
				Payee: of.Payee, Amount: r.Amount.String(), Currency: r.Amount.Currency.String(), Invoice: of.InvoiceReference, Order: of.ID, Payment: p.ID,
			},
			r.Reason, in(p.CapturedMinor).String(), others.String(), left.String(),
		},
		Consequence: fmt.Sprintf("%s %s go back to whoever paid order %s, beside other refunds of %s; of %s that were captured, %s remain.",
			r.Amount, r.Amount.Currency, of.ID, others, in(p.CapturedMinor), left),
	}
}
