package simulator

import (
	"fmt"
	"net/http"
	"time"

	"github.com/einmal/einmal/pkg/database"
)

// refund is money that goes back.
type refund struct {
	ID        string
	Intent    string
	Charge    string
	Amount    int64
	Currency  string
	Status    string
	Reason    string
	Failure   string // why it failed; empty: it did not
	CreatedAt time.Time

	metadata map[string]string
}

// TableName is where refunds are.
func (refund) TableName() string { return "psp_refunds" }

// refundObject is a refund as Stripe shows it.
type refundObject struct {
	ID            string            `json:"id"`
	Object        string            `json:"object"`
	Amount        int64             `json:"amount"`
	Charge        string            `json:"charge"`
	Created       int64             `json:"created"`
	Currency      string            `json:"currency"`
	FailureReason string            `json:"failure_reason,omitzero"`
	Metadata      map[string]string `json:"metadata"`
	PaymentIntent string            `json:"payment_intent"`
	Reason        *string           `json:"reason"`
	Status        string            `json:"status"`
}

func (r *refund) object() *refundObject {
	return &refundObject{
		ID: r.ID, Object: "refund", Amount: r.Amount, Charge: r.Charge, Created: r.CreatedAt.Unix(), Currency: r.Currency,
		FailureReason: r.Failure, Metadata: r.metadata, PaymentIntent: r.Intent, Reason: nullable(r.Reason), Status: r.Status,
	}
}

// createRefund answers POST /refunds. Without an amount all that is left goes back.
func (p pspAPI) createRefund(tx database.Tx, in request, f *form) (Answer, error) {
	id, charge := f.text("payment_intent"), f.text("charge")
	query, object := tx.Where("id = ?", id), "payment_intent"
	if charge != "" {
		query, id, object = tx.Where("charge = ?", charge), charge, "charge"
	}
	if id == "" {
		f.violate("parameter_missing", "", "One of the following params should be provided for this request: payment_intent or charge.")
	}
	i, err := oneIntent(tx, query)
	if err != nil {
		return Answer{}, err
	}
	left := int64(1) // of an intent that there is not
	if i != nil && i.AmountReceived > i.AmountRefunded {
		left = i.AmountReceived - i.AmountRefunded
	}
	r := &refund{
		ID: newPSPID("re_"), Amount: f.amount("amount", left), CreatedAt: tx.Now, metadata: f.metadata(),
		Reason: f.oneOf("reason", "", "duplicate", "fraudulent", "requested_by_customer"), Status: succeeded,
	}
	if wrong := f.wrong(); wrong != nil {
		return wrong.answer(http.StatusBadRequest), nil
	}
	switch {
	case i == nil:
		return pspNotFound(object, id, object), nil
	case i.Status != succeeded:
		return i.unexpected("This PaymentIntent (" + i.ID + ") does not have a successful charge to refund."), nil
	case i.AmountRefunded == i.AmountReceived:
		return pspError{
			Type: pspInvalidRequest, Code: "charge_already_refunded", Message: "Charge " + i.Charge + " has already been refunded.",
		}.decided(http.StatusBadRequest), nil
	case r.Amount > left:
		return pspError{
			Type: pspInvalidRequest, Code: "amount_too_large", Param: "amount",
			Message: fmt.Sprintf("Refund amount (%d) is greater than unrefunded amount on charge (%d).", r.Amount, left),
		}.decided(http.StatusBadRequest), nil
	}
	r.Intent, r.Charge, r.Currency = i.ID, i.Charge, i.Currency
	return p.giveBack(tx, in, i, r)
}

// giveBack makes the refund, unless the card takes no money back.
func (p pspAPI) giveBack(tx database.Tx, in request, i *intent, r *refund) (Answer, error) {
	events := []string{"refund.created", "refund.updated"}
	if cards[i.PaymentMethod].noRefund {
		r.Status, r.Failure = "failed", "expired_or_canceled_card"
		events = []string{"refund.created", "refund.failed"}
	}
	if err := tx.Create(r).Error; err != nil {
		return Answer{}, err
	}
	if err := writeMetadata(tx, r.ID, r.metadata); err != nil {
		return Answer{}, err
	}
	if r.Status == succeeded {
		i.AmountRefunded += r.Amount
		if err := i.write(tx); err != nil {
			return Answer{}, err
		}
		if err := i.refundEffect(tx, in, r).record(tx); err != nil {
			return Answer{}, err
		}
		if err := p.emit(tx, in, "charge.refunded", i.ID, i.charge()); err != nil {
			return Answer{}, err
		}
	}
	for _, event := range events {
		if err := p.emit(tx, in, event, r.ID, r.object()); err != nil {
			return Answer{}, err
		}
	}
	return decided(http.StatusOK, r.object()), nil
}

func (i *intent) refundEffect(tx database.Tx, in request, r *refund) Effect {
	e := i.effect(tx, in, kindRefund, r.Amount)
	e.Reference = r.ID
	if key := r.metadata[metadataEffectKey]; in.EffectKey == "" {
		e.EffectKey = key // the intent's belongs to another effect
	}
	return e
}
