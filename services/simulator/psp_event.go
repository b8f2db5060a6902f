package simulator

import "github.com/einmal/einmal/pkg/database"

// pspAPIVersion is the version in which events are written: that of stripe-go, which refuses those of others. A test compares.
const pspAPIVersion = "2025-08-27.basil"

// eventObject is an event as Stripe shows it.
type eventObject struct {
	ID              string    `json:"id"`
	Object          string    `json:"object"`
	APIVersion      string    `json:"api_version"`
	Created         int64     `json:"created"`
	Data            eventData `json:"data"`
	Livemode        bool      `json:"livemode"`
	PendingWebhooks int64     `json:"pending_webhooks"`
	Request         cause     `json:"request"`
	Type            string    `json:"type"`
}

type eventData struct {
	Object any `json:"object"`
}

// cause is the request that an event comes from.
type cause struct {
	ID             *string `json:"id"`
	IdempotencyKey *string `json:"idempotency_key"`
}

// emit tells the webhook what happened to an object. The event shows the object as it is then, however late it arrives.
func (p pspAPI) emit(tx database.Tx, in request, kind, reference string, object any) error {
	id := newPSPID("evt_")
	return p.webhooks.emit(tx, Event{Target: psp.name, ID: id, Type: kind, Reference: reference, Body: encode(eventObject{
		ID: id, Object: "event", APIVersion: pspAPIVersion, Created: tx.Now.Unix(), Data: eventData{object},
		PendingWebhooks: 1, Request: cause{IdempotencyKey: nullable(in.EffectKey)}, Type: kind,
	})})
}

// chargeObject is what an event about a refund shows of its charge.
type chargeObject struct {
	ID             string            `json:"id"`
	Object         string            `json:"object"`
	Amount         int64             `json:"amount"`
	AmountCaptured int64             `json:"amount_captured"`
	AmountRefunded int64             `json:"amount_refunded"`
	BillingDetails struct{}          `json:"billing_details"` // nobody said any
	Captured       bool              `json:"captured"`
	Created        int64             `json:"created"`
	Currency       string            `json:"currency"`
	Disputed       bool              `json:"disputed"`
	Livemode       bool              `json:"livemode"`
	Metadata       map[string]string `json:"metadata"`
	Paid           bool              `json:"paid"`
	PaymentIntent  string            `json:"payment_intent"`
	Refunded       bool              `json:"refunded"`
	Status         string            `json:"status"`
}

// charge is the charge of an intent that succeeded.
func (i *intent) charge() *chargeObject {
	return &chargeObject{
		ID: i.Charge, Object: "charge", Amount: i.Amount, AmountCaptured: i.AmountReceived, AmountRefunded: i.AmountRefunded,
		Captured: true, Created: i.CreatedAt.Unix(), Currency: i.Currency, Metadata: i.metadata, Paid: true, PaymentIntent: i.ID,
		Refunded: i.AmountRefunded == i.AmountReceived, Status: succeeded,
	}
}
