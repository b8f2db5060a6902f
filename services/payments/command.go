package payments

import (
	"errors"
	"fmt"
	"regexp"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"github.com/einmal/einmal/pkg/money"
	"github.com/einmal/einmal/pkg/problem"
)

// Limits of texts, in characters (code points).
const (
	maxName   = 255 // a payee, an invoice reference: a line of a statement, as long as an idempotency key
	maxReason = 500 // a sentence or two: why money goes back
)

// orderID is the rule for the caller's own names of orders: what goes into paths and file names as it is.
var orderID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

const orderIDRule = "must be 1 to 64 letters, digits and ._-"

// The commands below are what bodies say. Their MarshalJSON is what is fingerprinted: amounts are whole minor units, so that 12.5
// and 12.50 EUR are one command. A change there is a new fingerprint version.

// putOrder is the command of PUT /v1/orders/{order_id}: all that the order shall say.
type putOrder struct {
	Amount           string  `json:"amount"`
	Currency         string  `json:"currency"`
	Payee            string  `json:"payee"`
	InvoiceReference *string `json:"invoice_reference"`

	amount money.Amount
}

// Validate returns everything that is wrong.
func (c *putOrder) Validate() []problem.Violation {
	var all violations
	c.amount = all.amount(c.Amount, c.Currency)
	if n := utf8.RuneCountInString(c.Payee); n < 1 || n > maxName {
		all.add("/payee", "must have 1 to %d characters", maxName)
	}
	if c.InvoiceReference != nil {
		switch n := utf8.RuneCountInString(*c.InvoiceReference); {
		case n == 0:
			all.add("/invoice_reference", "must not be empty; leave it out if there is none")
		case n > maxName:
			all.add("/invoice_reference", "must have at most %d characters", maxName)
		}
	}
	return all
}

func (c *putOrder) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		AmountMinor      int64   `json:"amount_minor"`
		Currency         string  `json:"currency"`
		Payee            string  `json:"payee"`
		InvoiceReference *string `json:"invoice_reference"`
	}{c.amount.Minor, c.Currency, c.Payee, c.InvoiceReference})
}

// createPayment is the command of POST /v1/payments.
type createPayment struct {
	OrderID  string `json:"order_id"`
	Amount   string `json:"amount"`
	Currency string `json:"currency"`

	amount money.Amount
}

// Validate returns everything that is wrong.
func (c *createPayment) Validate() []problem.Violation {
	var all violations
	if !orderID.MatchString(c.OrderID) {
		all.add("/order_id", orderIDRule)
	}
	c.amount = all.amount(c.Amount, c.Currency)
	return all
}

func (c *createPayment) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		OrderID     string `json:"order_id"`
		AmountMinor int64  `json:"amount_minor"`
		Currency    string `json:"currency"`
	}{c.OrderID, c.amount.Minor, c.Currency})
}

// capturePayment is the command of POST /v1/payments/{id}/capture. Its currency is the payment's.
type capturePayment struct {
	Amount string `json:"amount"`

	amount money.Amount
}

// Validate returns what is wrong whatever the currency is.
func (c *capturePayment) Validate() []problem.Violation {
	var all violations
	all.amountText(c.Amount)
	return all
}

// in completes the command with the payment's currency.
func (c *capturePayment) in(currency money.Currency) (err error) {
	c.amount, err = amountIn(c.Amount, currency)
	return err
}

func (c *capturePayment) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		AmountMinor int64 `json:"amount_minor"`
	}{c.amount.Minor})
}

// createRefund is the command of POST /v1/payments/{id}/refunds. Its currency is the payment's.
type createRefund struct {
	Amount string `json:"amount"`
	Reason string `json:"reason"`

	amount money.Amount
}

// Validate returns what is wrong whatever the currency is.
func (c *createRefund) Validate() []problem.Violation {
	var all violations
	all.amountText(c.Amount)
	if n := utf8.RuneCountInString(c.Reason); n < 1 || n > maxReason {
		all.add("/reason", "must say in 1 to %d characters why the money goes back", maxReason)
	}
	return all
}

// in completes the command with the payment's currency.
func (c *createRefund) in(currency money.Currency) (err error) {
	c.amount, err = amountIn(c.Amount, currency)
	return err
}

func (c *createRefund) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		AmountMinor int64  `json:"amount_minor"`
		Reason      string `json:"reason"`
	}{c.amount.Minor, c.Reason})
}

// cancelPayment is the command of POST /v1/payments/{id}/cancel: the path says it all.
type cancelPayment struct{}

// Validate finds nothing: there is nothing to be wrong.
func (*cancelPayment) Validate() []problem.Violation { return nil }

// violations collects what is wrong.
type violations []problem.Violation

func (v *violations) add(pointer, format string, args ...any) {
	*v = append(*v, problem.Violation{Pointer: pointer, Detail: fmt.Sprintf(format, args...)})
}

// amount reads an amount that comes with its currency. Both are told, if both are wrong.
func (v *violations) amount(text, currency string) money.Amount {
	v.amountText(text)
	if _, err := money.ParseCurrency(currency); err != nil {
		v.add("/currency", "%s", err)
		return money.Amount{}
	}
	amount, err := money.Parse(text, currency)
	if err != nil && !malformed(err) {
		v.add("/amount", "%s", err)
	}
	return amount
}

// amountText notes what is wrong with an amount in any currency.
func (v *violations) amountText(text string) {
	if _, err := money.Parse(text, "EUR"); malformed(err) {
		v.add("/amount", "%s", err)
	}
}

// malformed reports whether a text is no amount in any currency.
func malformed(err error) bool {
	return errors.Is(err, money.ErrTooLong) || errors.Is(err, money.ErrSyntax)
}

// amountIn reads an amount in a currency that is known. Its error is a *problem.Problem.
func amountIn(text string, currency money.Currency) (money.Amount, error) {
	amount, err := money.Parse(text, currency.String())
	if err != nil {
		return money.Amount{}, problem.Invalid(problem.Violation{Pointer: "/amount", Detail: err.Error()})
	}
	return amount, nil
}
