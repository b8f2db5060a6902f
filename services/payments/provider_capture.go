package payments

import (
	"context"

	"github.com/stripe/stripe-go/v82"

	"github.com/einmal/einmal/pkg/outbox"
)

// captureCommand is what an effect of payment.capture tells the provider.
type captureCommand struct {
	PaymentID   string `json:"payment_id"`
	Reference   string `json:"reference"`
	AmountMinor int64  `json:"amount_minor"`
	Currency    string `json:"currency"`
}

// capturer captures payments. A payment is captured once, whatever keys the provider honours.
type capturer struct {
	psp
	cannotClose
}

// Send captures the payment. What was authorised beyond the amount is released by that.
func (p capturer) Send(ctx context.Context, e outbox.Effect) outbox.Evidence {
	c, ok := about[captureCommand](e)
	if !ok {
		return unreadable
	}
	var intent *stripe.PaymentIntent
	r, ok := ask(ctx, func(ctx context.Context) (err error) {
		params := &stripe.PaymentIntentCaptureParams{AmountToCapture: stripe.Int64(c.AmountMinor)}
		params.SetIdempotencyKey(e.EffectKey)
		intent, err = p.write.V1PaymentIntents.Capture(ctx, c.Reference, params)
		return err
	})
	if !ok || intent.ID != c.Reference {
		return r.failedSend()
	}
	ev := c.stands(intent)
	if ev.Finding == outbox.NotFound {
		ev.Finding = outbox.Ambiguous
	}
	return ev
}

// Lookup asks how much of the payment is captured.
func (p capturer) Lookup(ctx context.Context, e outbox.Effect) outbox.Evidence {
	c, ok := about[captureCommand](e)
	if !ok {
		return outbox.Evidence{Finding: outbox.Ambiguous, Says: unreadable.Says}
	}
	intent, r, ok := p.intent(ctx, c.Reference)
	if !ok {
		return r.failedAsk()
	}
	return c.stands(intent)
}

// stands is what a payment shows of its capture. Another amount than ours was captured by somebody else, or is a fault of the
// provider's: what it means for our books is for a person to say.
func (c captureCommand) stands(i *stripe.PaymentIntent) outbox.Evidence {
	switch i.Status {
	case stripe.PaymentIntentStatusSucceeded:
		if i.AmountReceived != c.AmountMinor {
			return differs(i.ID, "captured", amountShown{i.AmountReceived, i.Currency}, c.AmountMinor)
		}
		return stands(outbox.Confirmed, i.ID, i.Status)
	case stripe.PaymentIntentStatusProcessing:
		return stands(outbox.Accepted, i.ID, i.Status)
	case stripe.PaymentIntentStatusCanceled:
		return stands(outbox.Verdict, i.ID, i.Status) // for ever: nothing can be captured any more
	}
	return stands(outbox.NotFound, "", i.Status)
}
