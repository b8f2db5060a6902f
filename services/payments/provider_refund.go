package payments

import (
	"context"

	"github.com/stripe/stripe-go/v82"

	"github.com/einmal/einmal/pkg/outbox"
)

// refundCommand is what an effect of refund.create tells the provider.
type refundCommand struct {
	RefundID    string `json:"refund_id"`
	PaymentID   string `json:"payment_id"`
	Account     string `json:"account"`
	Reference   string `json:"reference"` // of the payment
	AmountMinor int64  `json:"amount_minor"`
	Currency    string `json:"currency"`
}

// refunder refunds payments. Two refunds of one amount look alike, so they are told apart by our key, which each carries.
type refunder struct {
	psp
	cannotClose
}

// Send makes the refund.
func (p refunder) Send(ctx context.Context, e outbox.Effect) outbox.Evidence {
	c, ok := about[refundCommand](e)
	if !ok {
		return unreadable
	}
	var refund *stripe.Refund
	r, ok := ask(ctx, func(ctx context.Context) (err error) {
		params := &stripe.RefundCreateParams{
			PaymentIntent: stripe.String(c.Reference), Amount: stripe.Int64(c.AmountMinor),
			Metadata: map[string]string{metaEffectKey: e.EffectKey, metaAccount: c.Account, metaPayment: c.PaymentID, metaRefund: c.RefundID},
		}
		params.SetIdempotencyKey(e.EffectKey)
		refund, err = p.write.V1Refunds.Create(ctx, params)
		return err
	})
	if !ok || refund.Metadata[metaEffectKey] != e.EffectKey { // an answer about another refund, as from a proxy that has mixed them up, is none
		return r.failedSend()
	}
	return c.stands(refund)
}

// Lookup asks for the refund by its reference, or finds it among the payment's by our key. The list is up to date.
func (p refunder) Lookup(ctx context.Context, e outbox.Effect) outbox.Evidence {
	c, ok := about[refundCommand](e)
	if !ok {
		return outbox.Evidence{Finding: outbox.Ambiguous, Says: unreadable.Says}
	}
	if e.Reference != "" {
		return p.again(ctx, e.Reference, c)
	}
	var found []outbox.Evidence
	r, ok := ask(ctx, func(ctx context.Context) error {
		params := &stripe.RefundListParams{PaymentIntent: stripe.String(c.Reference)}
		params.Limit = stripe.Int64(listed)
		for refund, err := range p.read.V1Refunds.List(ctx, params) {
			if err != nil {
				return err
			}
			if refund.Metadata[metaEffectKey] == e.EffectKey {
				found = append(found, c.stands(refund))
			}
		}
		return nil
	})
	if !ok || r.object != "list" {
		return r.failedAsk()
	}
	return together(found)
}

// again reads a refund that is known.
func (p refunder) again(ctx context.Context, reference string, c refundCommand) outbox.Evidence {
	var refund *stripe.Refund
	r, ok := ask(ctx, func(ctx context.Context) (err error) {
		refund, err = p.read.V1Refunds.Retrieve(ctx, reference, nil)
		return err
	})
	if !ok || refund.ID != reference {
		return r.failedAsk()
	}
	return c.stands(refund)
}

// stands is what a refund shows.
func (c refundCommand) stands(r *stripe.Refund) outbox.Evidence {
	if r.ID == "" {
		return stands(outbox.Ambiguous, "", "something without a name")
	}
	switch r.Status {
	case stripe.RefundStatusSucceeded:
		if r.Amount != c.AmountMinor {
			return differs(r.ID, "refunded", amountShown{r.Amount, r.Currency}, c.AmountMinor)
		}
		return stands(outbox.Confirmed, r.ID, r.Status)
	case stripe.RefundStatusFailed, stripe.RefundStatusCanceled:
		return stands(outbox.Verdict, r.ID, r.Status)
	case stripe.RefundStatusPending, stripe.RefundStatusRequiresAction:
		return stands(outbox.Accepted, r.ID, r.Status)
	}
	return stands(outbox.Ambiguous, "", r.Status)
}
