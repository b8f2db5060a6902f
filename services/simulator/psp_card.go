package simulator

// card is what a payment method does. Their names are those of Stripe's test mode: https://docs.stripe.com/testing.
type card struct {
	code        string // why it is declined; empty: it is not
	declineCode string
	message     string
	asks        bool // wants its owner to say yes first, who never does
	noRefund    bool // takes no money back
}

var cards = map[string]card{
	"pm_card_visa":       {},
	"pm_card_mastercard": {},
	"pm_card_amex":       {},

	"pm_card_chargeDeclined":                  {code: "card_declined", declineCode: "generic_decline", message: "Your card was declined."},
	"pm_card_visa_chargeDeclined":             {code: "card_declined", declineCode: "generic_decline", message: "Your card was declined."},
	"pm_card_chargeDeclinedInsufficientFunds": {code: "card_declined", declineCode: "insufficient_funds", message: "Your card has insufficient funds."},
	"pm_card_chargeDeclinedExpiredCard":       {code: "expired_card", message: "Your card has expired."},
	"pm_card_chargeDeclinedProcessingError":   {code: "processing_error", message: "An error occurred while processing your card. Try again in a little bit."},
	"pm_card_authenticationRequired":          {asks: true},

	// Stripe says succeeded first and failed later. Here the refund fails at once: nothing moves.
	"pm_card_refundFail": {noRefund: true},
}

// declined is the error of a card that declines.
func (c card) declined(charge string, intent *intentObject) pspError {
	return pspError{
		Type: pspCardError, Code: c.code, DeclineCode: c.declineCode, Message: c.message, Charge: charge, PaymentIntent: intent,
	}
}
