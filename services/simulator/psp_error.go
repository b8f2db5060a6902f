package simulator

import "net/http"

// pspError is an error as Stripe tells it: https://docs.stripe.com/api/errors.
type pspError struct {
	Type          string        `json:"type"`
	Code          string        `json:"code,omitzero"`
	DeclineCode   string        `json:"decline_code,omitzero"`
	Message       string        `json:"message"`
	Param         string        `json:"param,omitzero"`
	Charge        string        `json:"charge,omitzero"`
	PaymentIntent *intentObject `json:"payment_intent,omitzero"`
}

// Stripe's types and those of its codes that are used in more than one place.
const (
	pspInvalidRequest = "invalid_request_error"
	pspCardError      = "card_error"
	pspAPIError       = "api_error"
	pspKeyError       = "idempotency_error"

	pspUnexpectedState = "payment_intent_unexpected_state"
	pspMissing         = "resource_missing"
)

func (e pspError) answer(status int) Answer {
	return Answer{Status: status, Body: encode(struct {
		Error pspError `json:"error"`
	}{e})}
}

// decided is the answer of a request that was begun: the error belongs to its idempotency key from now on.
func (e pspError) decided(status int) Answer {
	answer := e.answer(status)
	answer.Decided = true
	return answer
}

// pspNo says no to a request with which nothing was begun.
func pspNo(status int, code, detail string) Answer {
	e := pspError{Type: pspInvalidRequest, Message: detail}
	switch {
	case code == codeInProgress:
		e.Type, e.Code = pspKeyError, "idempotency_key_in_use"
	case status == http.StatusPaymentRequired:
		e.Type, e.Code, e.DeclineCode = pspCardError, "card_declined", "generic_decline"
	case status == http.StatusTooManyRequests:
		e.Code = "rate_limit"
	case status >= 500:
		e.Type = pspAPIError
	}
	return e.answer(status)
}

// pspFault is Stripe's own no before anything is done, when it is true. After that it would be a lie, which Stripe does not tell:
// then it is in words of which nothing follows.
func pspFault(f *Fault, detail string) Answer {
	if f.When == After {
		return pspError{Type: pspAPIError, Message: detail}.answer(f.Status)
	}
	return pspNo(f.Status, codeError, detail)
}

// pspNotFound is the answer about an object that there is not.
func pspNotFound(object, id, param string) Answer {
	return pspError{
		Type: pspInvalidRequest, Code: pspMissing, Param: param, Message: "No such " + object + ": '" + id + "'",
	}.answer(http.StatusNotFound)
}
