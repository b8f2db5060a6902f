package simulator

import (
	"net/http"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/einmal/einmal/pkg/database"
)

// intent is a payment intent.
type intent struct {
	ID                 string
	Amount             int64
	AmountReceived     int64
	AmountRefunded     int64
	Currency           string
	CaptureMethod      string
	Status             string
	PaymentMethod      string // empty: none yet
	Charge             string // empty: not confirmed
	Declined           string // the payment method that the last confirmation failed with; empty: it did not fail
	CancellationReason string
	Description        string
	CreatedAt          time.Time
	CanceledAt         *time.Time

	metadata map[string]string
}

// TableName is where intents are.
func (intent) TableName() string { return "psp_intents" }

// The states of an intent: https://docs.stripe.com/payments/paymentintents/lifecycle.
const (
	needsPaymentMethod = "requires_payment_method"
	needsConfirmation  = "requires_confirmation"
	needsAction        = "requires_action"
	needsCapture       = "requires_capture"
	succeeded          = "succeeded"
	canceled           = "canceled"
)

// intentNamed reads an intent, or nil.
func intentNamed(tx database.Tx, id string) (*intent, error) {
	return oneIntent(tx, tx.Where("id = ?", id))
}

func oneIntent(tx database.Tx, query *gorm.DB) (*intent, error) {
	var found []intent
	if err := query.Limit(1).Find(&found).Error; err != nil || len(found) == 0 {
		return nil, err
	}
	var err error
	found[0].metadata, err = metadataOf(tx, found[0].ID)
	return &found[0], err
}

// write stores the intent as it is now.
func (i *intent) write(tx database.Tx) error {
	return tx.Model(&intent{}).Where("id = ?", i.ID).Select("*").Updates(i).Error
}

// intentObject is an intent as Stripe shows it.
type intentObject struct {
	ID                 string            `json:"id"`
	Object             string            `json:"object"`
	Amount             int64             `json:"amount"`
	AmountCapturable   int64             `json:"amount_capturable"`
	AmountReceived     int64             `json:"amount_received"`
	CanceledAt         *int64            `json:"canceled_at"`
	CancellationReason *string           `json:"cancellation_reason"`
	CaptureMethod      string            `json:"capture_method"`
	ClientSecret       string            `json:"client_secret"`
	ConfirmationMethod string            `json:"confirmation_method"`
	Created            int64             `json:"created"`
	Currency           string            `json:"currency"`
	Description        *string           `json:"description"`
	LastPaymentError   *pspError         `json:"last_payment_error"`
	LatestCharge       *string           `json:"latest_charge"`
	Livemode           bool              `json:"livemode"`
	Metadata           map[string]string `json:"metadata"`
	NextAction         *nextAction       `json:"next_action"`
	PaymentMethod      *string           `json:"payment_method"`
	PaymentMethodTypes []string          `json:"payment_method_types"`
	Status             string            `json:"status"`
}

type nextAction struct {
	Type string `json:"type"`
}

func (i *intent) object() *intentObject {
	o := &intentObject{
		ID: i.ID, Object: "payment_intent", Amount: i.Amount, AmountReceived: i.AmountReceived,
		CancellationReason: nullable(i.CancellationReason), CaptureMethod: i.CaptureMethod,
		ClientSecret: i.ID + "_secret_simulated", ConfirmationMethod: "automatic", Created: i.CreatedAt.Unix(), Currency: i.Currency,
		Description: nullable(i.Description), LatestCharge: nullable(i.Charge), Metadata: i.metadata,
		PaymentMethod: nullable(i.PaymentMethod), PaymentMethodTypes: []string{"card"}, Status: i.Status,
	}
	if i.Status == needsCapture {
		o.AmountCapturable = i.Amount
	}
	if i.Status == needsAction {
		o.NextAction = &nextAction{"use_stripe_sdk"}
	}
	if i.Declined != "" {
		e := cards[i.Declined].declined(i.Charge, nil)
		o.LastPaymentError = &e
	}
	if i.CanceledAt != nil {
		at := i.CanceledAt.Unix()
		o.CanceledAt = &at
	}
	return o
}

func nullable(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// unexpected is Stripe's answer to what an intent cannot do in its state.
func (i *intent) unexpected(message string) Answer {
	return pspError{Type: pspInvalidRequest, Code: pspUnexpectedState, Message: message, PaymentIntent: i.object()}.decided(http.StatusBadRequest)
}

// effect is something that a request did to an intent.
func (i *intent) effect(tx database.Tx, in request, kind string, amount int64) Effect {
	e := Effect{
		Target: psp.name, ID: newPSPID(""), Kind: kind, EffectKey: in.EffectKey, Reference: i.ID,
		Account: i.metadata[metadataAccount], AmountMinor: amount, Currency: strings.ToUpper(i.Currency),
		OrderID: i.metadata[metadataOrder], At: tx.Now,
	}
	if e.EffectKey == "" {
		e.EffectKey = i.metadata[metadataEffectKey]
	}
	if kind != kindAuthorize {
		e.Parent = i.ID
	}
	return e
}
