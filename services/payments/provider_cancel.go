package payments

import (
	"context"

	"github.com/stripe/stripe-go/v82"

	"github.com/einmal/einmal/pkg/outbox"
)

// cancelCommand is what an effect of payment.cancel tells the provider.
type cancelCommand struct {
	PaymentID string `json:"payment_id"`
	Reference string `json:"reference"`
}

// canceler cancels payments. What is canceled stays so, whatever keys the provider honours.
type canceler struct {
	psp
	cannotClose
}

// Send cancels the payment: what was held is released.
func (p canceler) Send(ctx context.Context, e outbox.Effect) outbox.Evidence {
	c, ok := about[cancelCommand](e)
	if !ok {
		return unreadable
	}
	var intent *stripe.PaymentIntent
	r, ok := ask(ctx, func(ctx context.Context) (err error) {
		params := &stripe.PaymentIntentCancelParams{}
		params.SetIdempotencyKey(e.EffectKey)
		intent, err = p.write.V1PaymentIntents.Cancel(ctx, c.Reference, params)
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

// Lookup asks whether the payment is canceled.
func (p canceler) Lookup(ctx context.Context, e outbox.Effect) outbox.Evidence {
	c, ok := about[cancelCommand](e)
	if !ok {
		return outbox.Evidence{Finding: outbox.Ambiguous, Says: unreadable.Says}
	}
	intent, r, ok := p.intent(ctx, c.Reference)
	if !ok {
		return r.failedAsk()
	}
	return c.stands(intent)
}

// stands is what a payment shows of its cancel.
func (c cancelCommand) stands(i *stripe.PaymentIntent) outbox.Evidence {
	switch i.Status {
	case stripe.PaymentIntentStatusCanceled:
		return stands(outbox.Confirmed, i.ID, i.Status)
	case stripe.PaymentIntentStatusSucceeded:
		return stands(outbox.Verdict, i.ID, i.Status) // for ever: what is captured is refunded, not canceled
	}
	return stands(outbox.NotFound, "", i.Status)
}
