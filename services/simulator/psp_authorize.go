package simulator

import (
	"net/http"
	"slices"

	"github.com/einmal/einmal/pkg/database"
)

// createIntent answers POST /payment_intents.
func (p pspAPI) createIntent(tx database.Tx, in request, f *form) (Answer, error) {
	i := &intent{
		ID: newPSPID("pi_"), Amount: f.amount("amount", 0), Currency: f.currency("currency"),
		CaptureMethod: f.oneOf("capture_method", "automatic_async", "automatic", "automatic_async", "manual"),
		PaymentMethod: f.text("payment_method"), Description: f.text("description"), Status: needsPaymentMethod, CreatedAt: tx.Now,
		metadata: f.metadata(),
	}
	f.oneOf("confirmation_method", "", "automatic")
	confirm := f.oneOf("confirm", "false", "true", "false")
	if wrong := f.wrong(); wrong != nil {
		return wrong.answer(http.StatusBadRequest), nil
	}
	if no, ok := checkCard(i.PaymentMethod); !ok {
		return no, nil
	}
	if i.PaymentMethod != "" {
		i.Status = needsConfirmation
	}
	if err := tx.Create(i).Error; err != nil {
		return Answer{}, err
	}
	if err := writeMetadata(tx, i.ID, i.metadata); err != nil {
		return Answer{}, err
	}
	if confirm == "true" {
		return p.authorize(tx, in, i)
	}
	return decided(http.StatusOK, i.object()), nil
}

// confirmIntent answers POST /payment_intents/{id}/confirm.
func (p pspAPI) confirmIntent(tx database.Tx, in request, f *form) (Answer, error) {
	method, captureMethod := f.text("payment_method"), f.oneOf("capture_method", "", "automatic", "automatic_async", "manual")
	if wrong := f.wrong(); wrong != nil {
		return wrong.answer(http.StatusBadRequest), nil
	}
	if no, ok := checkCard(method); !ok {
		return no, nil
	}
	i, no, err := addressed(tx, in)
	if i == nil {
		return no, err
	}
	if method != "" {
		i.PaymentMethod = method
	}
	if captureMethod != "" {
		i.CaptureMethod = captureMethod
	}
	return p.authorize(tx, in, i)
}

// checkCard says no to a payment method that there is not.
func checkCard(method string) (no Answer, ok bool) {
	if _, known := cards[method]; method != "" && !known {
		return pspNotFound("PaymentMethod", method, "payment_method"), false
	}
	return Answer{}, true
}

// addressed is the intent that the path names, or an answer that says that there is none.
func addressed(tx database.Tx, in request) (*intent, Answer, error) {
	id := in.http.PathValue("id")
	i, err := intentNamed(tx, id)
	if i == nil {
		return nil, pspNotFound("payment_intent", id, "intent"), err
	}
	return i, Answer{}, nil
}

// authorize asks the card. Only what it allows is an effect.
func (p pspAPI) authorize(tx database.Tx, in request, i *intent) (Answer, error) {
	switch {
	case i.Status == succeeded:
		return i.unexpected("You cannot confirm this PaymentIntent because it has already succeeded after being previously confirmed."), nil
	case !slices.Contains([]string{needsPaymentMethod, needsConfirmation, needsAction}, i.Status):
		return i.unexpected("You cannot confirm this PaymentIntent because it has a status of " + i.Status + ". Only a PaymentIntent with " +
			"one of the following statuses may be confirmed: requires_confirmation, requires_action, requires_payment_method."), nil
	case i.PaymentMethod == "":
		return i.unexpected("You cannot confirm this PaymentIntent because it's missing a payment method. " +
			"Confirm it with a payment method."), nil
	}
	c := cards[i.PaymentMethod]
	if c.asks {
		i.Status, i.Declined = needsAction, ""
		return p.changed(tx, in, i, "payment_intent.requires_action")
	}
	i.Charge = newPSPID("ch_")
	if c.code != "" {
		i.Status, i.Declined, i.PaymentMethod = needsPaymentMethod, i.PaymentMethod, ""
		if answer, err := p.changed(tx, in, i, "payment_intent.payment_failed"); err != nil {
			return answer, err
		}
		return c.declined(i.Charge, i.object()).decided(http.StatusPaymentRequired), nil
	}
	i.Status, i.Declined = needsCapture, ""
	if err := i.effect(tx, in, kindAuthorize, i.Amount).record(tx); err != nil {
		return Answer{}, err
	}
	if i.CaptureMethod != "manual" {
		return p.capture(tx, in, i, i.Amount)
	}
	return p.changed(tx, in, i, "payment_intent.amount_capturable_updated")
}

// changed stores an intent, tells its webhook, and answers with what it is now.
func (p pspAPI) changed(tx database.Tx, in request, i *intent, event string) (Answer, error) {
	if err := i.write(tx); err != nil {
		return Answer{}, err
	}
	return decided(http.StatusOK, i.object()), p.emit(tx, in, event, i.ID, i.object())
}
