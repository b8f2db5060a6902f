package simulator

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/einmal/einmal/pkg/database"
)

// captureIntent answers POST /payment_intents/{id}/capture.
func (p pspAPI) captureIntent(tx database.Tx, in request, f *form) (Answer, error) {
	i, no, err := addressed(tx, in)
	if i == nil {
		return no, err
	}
	amount, metadata := f.amount("amount_to_capture", i.Amount), f.metadata()
	f.oneOf("final_capture", "true", "true")
	if wrong := f.wrong(); wrong != nil {
		return wrong.answer(http.StatusBadRequest), nil
	}
	switch {
	case i.Status == succeeded:
		return i.unexpected("This PaymentIntent could not be captured because it has already been captured."), nil
	case i.Status != needsCapture:
		return i.unexpected("This PaymentIntent could not be captured because it has a status of " + i.Status +
			". Only a PaymentIntent with one of the following statuses may be captured: requires_capture."), nil
	case amount > i.Amount:
		return pspError{
			Type: pspInvalidRequest, Code: "amount_too_large", Param: "amount_to_capture", PaymentIntent: i.object(),
			Message: fmt.Sprintf("The amount_to_capture %d is greater than the capturable amount %d.", amount, i.Amount),
		}.decided(http.StatusBadRequest), nil
	}
	if err := writeMetadata(tx, i.ID, metadata); err != nil {
		return Answer{}, err
	}
	if i.metadata, err = metadataOf(tx, i.ID); err != nil {
		return Answer{}, err
	}
	return p.capture(tx, in, i, amount)
}

// capture takes the money. What was authorised beyond it is released.
func (p pspAPI) capture(tx database.Tx, in request, i *intent, amount int64) (Answer, error) {
	i.Status, i.AmountReceived = succeeded, amount
	if err := i.effect(tx, in, kindCapture, amount).record(tx); err != nil {
		return Answer{}, err
	}
	return p.changed(tx, in, i, "payment_intent.succeeded")
}

// cancelIntent answers POST /payment_intents/{id}/cancel. Only where something was authorised there is an effect.
func (p pspAPI) cancelIntent(tx database.Tx, in request, f *form) (Answer, error) {
	reason := f.oneOf("cancellation_reason", "", "duplicate", "fraudulent", "requested_by_customer", "abandoned")
	if wrong := f.wrong(); wrong != nil {
		return wrong.answer(http.StatusBadRequest), nil
	}
	i, no, err := addressed(tx, in)
	if i == nil {
		return no, err
	}
	if !slices.Contains([]string{needsPaymentMethod, needsConfirmation, needsAction, needsCapture}, i.Status) {
		return i.unexpected("You cannot cancel this PaymentIntent because it has a status of " + i.Status + ". Only a PaymentIntent with " +
			"one of the following statuses may be canceled: requires_payment_method, requires_capture, requires_confirmation, requires_action."), nil
	}
	if i.Status == needsCapture {
		if err := i.effect(tx, in, kindVoid, i.Amount).record(tx); err != nil {
			return Answer{}, err
		}
	}
	i.Status, i.CancellationReason, i.CanceledAt = canceled, reason, &tx.Now
	return p.changed(tx, in, i, "payment_intent.canceled")
}
