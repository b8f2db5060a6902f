package payments

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/stripe/stripe-go/v82"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/outbox"
)

// authorizeCommand is what an effect of payment.create tells the provider. It holds all that a send says, so that the same send says
// the same after a change of the settings.
type authorizeCommand struct {
	PaymentID     string `json:"payment_id"`
	OrderID       string `json:"order_id"`
	Account       string `json:"account"`
	PaymentMethod string `json:"payment_method"`
	AmountMinor   int64  `json:"amount_minor"`
	Currency      string `json:"currency"`
}

// authorizer authorises payments: it makes one at the provider, which moves nothing and may be repeated, commits its reference under
// our fence, and confirms that one and no other. So there is one that can ever be authorised, also where the provider ignores keys,
// and whoever closes under a newer fence knows which.
type authorizer struct {
	psp
	db        *database.DB
	namespace string // empty: the database's
}

// Send authorises the payment.
func (a authorizer) Send(ctx context.Context, e outbox.Effect) outbox.Evidence {
	c, ok := about[authorizeCommand](e)
	if !ok {
		return unreadable
	}
	reference := e.Reference
	if reference == "" {
		made, no := a.make(ctx, e, c)
		if made == "" {
			return no
		}
		switch ours, err := outbox.Learn(ctx, a.db, e, made); {
		case err != nil:
			return outbox.Evidence{Finding: outbox.NotSent, Says: "its reference could not be stored, so it was not confirmed"}
		case !ours:
			return outbox.Evidence{Finding: outbox.NotSent, Says: "somebody else has taken the effect meanwhile, so it was not confirmed"}
		}
		reference = made
	}
	var intent *stripe.PaymentIntent
	r, ok := ask(ctx, func(ctx context.Context) (err error) {
		params := &stripe.PaymentIntentConfirmParams{PaymentMethod: stripe.String(c.PaymentMethod)}
		params.SetIdempotencyKey(e.EffectKey)
		intent, err = a.write.V1PaymentIntents.Confirm(ctx, reference, params)
		return err
	})
	if !ok || intent.ID != reference {
		return r.failedSend()
	}
	return c.confirmed(intent)
}

// unlikeISO are the currencies whose minor units Stripe counts otherwise than ISO 4217 does (https://docs.stripe.com/currencies): an
// amount would be taken for a hundred times as much, or as little.
var unlikeISO = map[string]bool{"ISK": true, "UGX": true, "MGA": true}

// make makes the payment at the provider and returns its reference, or else why there is none. Until it is confirmed it moves nothing,
// so whatever became of the call, nothing was sent.
func (a authorizer) make(ctx context.Context, e outbox.Effect, c authorizeCommand) (reference string, no outbox.Evidence) {
	if unlikeISO[c.Currency] {
		return "", outbox.Evidence{Finding: outbox.Refused, Says: "counts " + c.Currency + " in other units than ISO 4217 does"}
	}
	// A failure that the provider keeps under a key says nothing about another one.
	intent, r, ok := a.create(ctx, e, c, "create")
	if !ok && r.status >= http.StatusInternalServerError && r.replayed {
		intent, r, ok = a.create(ctx, e, c, fmt.Sprintf("create %d", e.Fence))
	}
	switch {
	case ok && c.made(intent, e):
		return intent.ID, outbox.Evidence{}
	case ok:
		return "", outbox.Evidence{Finding: outbox.NotSent, Says: "nothing was confirmed; when it was to be made, the answer was not about it"}
	case r.refuses(http.StatusBadRequest, stripe.ErrorTypeIdempotency):
		return a.adopt(ctx, e, c)
	}
	if no = r.failedSend(); no.Finding != outbox.Refused {
		no = outbox.Evidence{Finding: outbox.NotSent, Says: "nothing was confirmed; when it was to be made: " + no.Says, RetryAfter: r.retryAfter}
	}
	return "", no
}

func (a authorizer) create(ctx context.Context, e outbox.Effect, c authorizeCommand, name string) (intent *stripe.PaymentIntent, r result, ok bool) {
	r, ok = ask(ctx, func(ctx context.Context) (err error) {
		params := &stripe.PaymentIntentCreateParams{
			Amount: stripe.Int64(c.AmountMinor), Currency: stripe.String(strings.ToLower(c.Currency)),
			CaptureMethod: stripe.String("manual"), PaymentMethod: stripe.String(c.PaymentMethod),
			PaymentMethodTypes: []*string{stripe.String("card")},
			Metadata:           map[string]string{metaEffectKey: e.EffectKey, metaAccount: c.Account, metaOrder: c.OrderID, metaPayment: c.PaymentID},
		}
		params.SetIdempotencyKey(a.key(e, name))
		intent, err = a.write.V1PaymentIntents.Create(ctx, params)
		return err
	})
	return intent, r, ok
}

// adopt finds what was made under our key for a claim that a restore has forgotten: the claim that was made again has a payment of another
// name, so the provider takes it for another request. What has become of it is the answer; while it was not confirmed, it is confirmed.
func (a authorizer) adopt(ctx context.Context, e outbox.Effect, c authorizeCommand) (reference string, no outbox.Evidence) {
	found, r, ok := a.underKey(ctx, e)
	if !ok {
		return "", r.failedAsk()
	}
	switch no = c.stand(found); {
	case no.Finding != outbox.NotFound:
		return "", no
	case len(found) == 0:
		return "", outbox.Evidence{Finding: outbox.Different, Says: "the provider knows our key from another payment, which is not among its newest"}
	case !c.made(found[0], e):
		return "", differs(found[0].ID, "made under our key", amountShown{found[0].Amount, found[0].Currency}, c.AmountMinor)
	}
	return found[0].ID, outbox.Evidence{}
}

// made reports whether a payment is the one that an effect makes. An answer that is about another, as from a proxy that has mixed them
// up, would have us confirm what somebody else wants to be paid.
func (c authorizeCommand) made(i *stripe.PaymentIntent, e outbox.Effect) bool {
	return i.ID != "" && i.Metadata[metaEffectKey] == e.EffectKey && c.asks(i)
}

// asks reports whether a payment is for what is to be paid.
func (c authorizeCommand) asks(i *stripe.PaymentIntent) bool {
	return i.Amount == c.AmountMinor && strings.EqualFold(string(i.Currency), c.Currency)
}

// key is the key of a call that belongs to an effect and is not the effect. Where the installation has no other name than its
// database's, the effect's own key stands for it.
func (a authorizer) key(e outbox.Effect, name string) string {
	namespace := a.namespace
	if namespace == "" {
		namespace = e.EffectKey
	}
	return outbox.Key(namespace, Name, e.AccountID, e.IdempotencyKey, name)
}

// confirmed is what the answer to a confirm shows.
func (c authorizeCommand) confirmed(i *stripe.PaymentIntent) outbox.Evidence {
	if i.Status == stripe.PaymentIntentStatusRequiresPaymentMethod {
		return stands(outbox.Verdict, i.ID, i.Status) // declined, and said so with 200
	}
	ev := c.stands(i)
	if ev.Finding == outbox.NotFound {
		ev.Finding = outbox.Ambiguous
	}
	return ev
}

// stands is what a payment shows that was looked up.
func (c authorizeCommand) stands(i *stripe.PaymentIntent) outbox.Evidence {
	switch i.Status {
	case stripe.PaymentIntentStatusRequiresCapture, stripe.PaymentIntentStatusSucceeded:
		if !c.asks(i) {
			return differs(i.ID, "authorized", amountShown{i.Amount, i.Currency}, c.AmountMinor)
		}
		return stands(outbox.Confirmed, i.ID, i.Status)
	case stripe.PaymentIntentStatusProcessing:
		return stands(outbox.Accepted, i.ID, i.Status)
	case stripe.PaymentIntentStatusCanceled:
		return stands(outbox.Verdict, i.ID, i.Status) // for ever: no confirm is possible any more
	}
	return stands(outbox.NotFound, "", i.Status) // not authorised, but a confirm may be on its way
}

// stand is what all payments under one key show.
func (c authorizeCommand) stand(intents []*stripe.PaymentIntent) outbox.Evidence {
	var found []outbox.Evidence
	for _, intent := range intents {
		found = append(found, c.stands(intent))
	}
	return together(found)
}

// Lookup asks for the payment by its reference, or finds it by our key: without a stored reference it can't have been confirmed,
// unless the database has forgotten one.
func (a authorizer) Lookup(ctx context.Context, e outbox.Effect) outbox.Evidence {
	c, ok := about[authorizeCommand](e)
	if !ok {
		return outbox.Evidence{Finding: outbox.Ambiguous, Says: unreadable.Says}
	}
	if e.Reference == "" {
		return a.find(ctx, e, c)
	}
	intent, r, ok := a.intent(ctx, e.Reference)
	if !ok {
		return r.failedAsk()
	}
	return c.stands(intent)
}

const (
	// listed is a page of a list, maxListed how much of it is looked through: what an account makes in some minutes. Finding nothing
	// proves nothing anyway.
	listed    = 100
	maxListed = 3 * listed

	// listedBefore is how much older than the effect what it has made may be: a claim that a restore has forgotten, and that was
	// made again, finds what it had made before.
	listedBefore = 24 * time.Hour
)

// find looks for the payment by our key.
func (a authorizer) find(ctx context.Context, e outbox.Effect, c authorizeCommand) outbox.Evidence {
	intents, r, ok := a.underKey(ctx, e)
	if !ok {
		return r.failedAsk()
	}
	return c.stand(intents)
}

// underKey looks for what was made under our key through the newest payments. The list is up to date, which the provider's search is not.
func (a authorizer) underKey(ctx context.Context, e outbox.Effect) (found []*stripe.PaymentIntent, r result, ok bool) {
	params := &stripe.PaymentIntentListParams{CreatedRange: &stripe.RangeQueryParams{GreaterThanOrEqual: e.CreatedAt.Add(-listedBefore).Unix()}}
	params.Limit = stripe.Int64(listed)
	r, ok = ask(ctx, func(ctx context.Context) error {
		seen := 0
		for intent, err := range a.read.V1PaymentIntents.List(ctx, params) {
			if err != nil {
				return err
			}
			if intent.Metadata[metaEffectKey] == e.EffectKey {
				found = append(found, intent)
			}
			if seen++; seen == maxListed {
				return nil
			}
		}
		return nil
	})
	return found, r, ok && r.object == "list"
}

// Close makes sure that the payment is not authorised any more, unless it is: then it has happened. It is called under a newer fence
// than any send had, so without a stored reference nobody has confirmed anything, or ever will.
func (a authorizer) Close(ctx context.Context, e outbox.Effect) outbox.Evidence {
	c, ok := about[authorizeCommand](e)
	if !ok {
		return outbox.Evidence{Finding: outbox.Ambiguous, Says: unreadable.Says}
	}
	if e.Reference == "" {
		return outbox.Evidence{Finding: outbox.Closed, Says: "nothing was ever confirmed"}
	}
	intent, r, ok := a.intent(ctx, e.Reference)
	if !ok {
		return r.failedAsk()
	}
	switch ev := c.stands(intent); ev.Finding {
	case outbox.NotFound:
	case outbox.Verdict: // by an earlier close whose answer was lost, or by somebody else
		return outbox.Evidence{Finding: outbox.Closed, Says: "the provider has canceled it"}
	default:
		return ev
	}
	r, ok = ask(ctx, func(ctx context.Context) (err error) {
		params := &stripe.PaymentIntentCancelParams{}
		params.SetIdempotencyKey(a.key(e, fmt.Sprintf("close %d", e.Fence)))
		intent, err = a.write.V1PaymentIntents.Cancel(ctx, e.Reference, params)
		return err
	})
	switch {
	case !ok:
		return r.failedAsk()
	case intent.Status != stripe.PaymentIntentStatusCanceled:
		return stands(outbox.Ambiguous, "", intent.Status)
	}
	// Had it been authorised in between, the cancel has made that void: nothing is held either way.
	return outbox.Evidence{Finding: outbox.Closed, Says: "canceled at the provider; nothing is held"}
}
