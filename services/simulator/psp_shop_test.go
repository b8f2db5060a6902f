package simulator_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stripe/stripe-go/v82"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/services/simulator"
)

// shop is a caller of the payment provider: Stripe's own client, whose requests and reading of answers are not ours.
type shop struct {
	*world
	stripe *stripe.Client
}

func openShop(t *testing.T, kind database.Kind) *shop {
	t.Helper()
	s := &shop{world: start(t, kind)}
	s.connect()
	return s
}

// connect makes a client for the simulator as it runs now.
func (s *shop) connect() {
	s.stripe = stripe.NewClient(writeToken, stripe.WithBackends(stripe.NewBackendsWithConfig(&stripe.BackendConfig{
		URL: stripe.String(s.base), HTTPClient: client, MaxNetworkRetries: stripe.Int64(0),
		EnableTelemetry: stripe.Bool(false), LeveledLogger: &stripe.LeveledLogger{Level: stripe.LevelNull},
	})))
}

// order is what intents in these tests are for.
var order = map[string]string{"order_id": "o-1", "account_id": "acme", "einmal_effect_key": "key-of-o-1"}

func (s *shop) create(key, card string) (*stripe.PaymentIntent, error) {
	p := &stripe.PaymentIntentCreateParams{
		Amount: stripe.Int64(1250), Currency: stripe.String("eur"), CaptureMethod: stripe.String("manual"), Metadata: order,
		PaymentMethodTypes: stripe.StringSlice([]string{"card"}),
	}
	if card != "" {
		p.PaymentMethod = stripe.String(card)
	}
	p.SetIdempotencyKey(key)
	return s.stripe.V1PaymentIntents.Create(s.t.Context(), p)
}

func (s *shop) confirm(key, id string) (*stripe.PaymentIntent, error) {
	p := &stripe.PaymentIntentConfirmParams{}
	p.SetIdempotencyKey(key)
	return s.stripe.V1PaymentIntents.Confirm(s.t.Context(), id, p)
}

func (s *shop) capture(key, id string, amount int64) (*stripe.PaymentIntent, error) {
	p := &stripe.PaymentIntentCaptureParams{AmountToCapture: stripe.Int64(amount)}
	p.SetIdempotencyKey(key)
	return s.stripe.V1PaymentIntents.Capture(s.t.Context(), id, p)
}

func (s *shop) cancel(key, id string) (*stripe.PaymentIntent, error) {
	p := &stripe.PaymentIntentCancelParams{CancellationReason: stripe.String("requested_by_customer")}
	p.SetIdempotencyKey(key)
	return s.stripe.V1PaymentIntents.Cancel(s.t.Context(), id, p)
}

func (s *shop) refund(key, id string, amount int64) (*stripe.Refund, error) {
	p := &stripe.RefundCreateParams{
		PaymentIntent: stripe.String(id), Amount: stripe.Int64(amount), Metadata: map[string]string{"einmal_effect_key": key},
	}
	p.SetIdempotencyKey(key)
	return s.stripe.V1Refunds.Create(s.t.Context(), p)
}

// authorized is an intent that was created and confirmed.
func (s *shop) authorized(key string) string {
	s.t.Helper()
	created := must(s.create(key+"-create", "pm_card_visa"))(s.t)
	must(s.confirm(key+"-authorize", created.ID))(s.t)
	return created.ID
}

func (s *shop) captured(key string, amount int64) string {
	s.t.Helper()
	id := s.authorized(key)
	must(s.capture(key+"-capture", id, amount))(s.t)
	return id
}

// must unwraps what has to succeed.
func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// checkNo compares what the provider says no with.
func checkNo(t *testing.T, err error, status int, kind stripe.ErrorType, code stripe.ErrorCode) *stripe.Error {
	t.Helper()
	var e *stripe.Error
	if !errors.As(err, &e) || e.HTTPStatusCode != status || e.Type != kind || e.Code != code {
		t.Errorf("got %v, want %d %s %s", err, status, kind, code)
		return &stripe.Error{}
	}
	return e
}

// checkUnexpected: the object's state refuses, and the object is shown.
func checkUnexpected(t *testing.T, err error, state stripe.PaymentIntentStatus) {
	t.Helper()
	e := checkNo(t, err, http.StatusBadRequest, stripe.ErrorTypeInvalidRequest, stripe.ErrorCodePaymentIntentUnexpectedState)
	if e.PaymentIntent == nil || e.PaymentIntent.Status != state {
		t.Errorf("shows %v, want an intent that is %s", e.PaymentIntent, state)
	}
}

// pspLedger is what really happened at the provider.
func (w *world) pspLedger() []simulator.Effect {
	return read[simulator.Effect](w, "/_ledger?target=psp")
}

func (s *shop) checkLedger(want ...simulator.Effect) {
	s.t.Helper()
	for i := range want {
		want[i].Target, want[i].Account, want[i].OrderID, want[i].Currency = "psp", "acme", "o-1", "EUR"
	}
	if diff := cmp.Diff(want, s.pspLedger(), cmpopts.IgnoreFields(simulator.Effect{}, "At"), cmpopts.EquateEmpty()); diff != "" {
		s.t.Errorf("ledger (-want +got):\n%s", diff)
	}
}

// moved is the sum of the effects of one kind.
func (s *shop) moved(kind string) (sum int64) {
	for _, e := range s.pspLedger() {
		if e.Kind == kind {
			sum += e.AmountMinor
		}
	}
	return sum
}

// form posts parameters as they are, for what Stripe's client would not send.
func (s *shop) form(path, body string, headers ...string) answer {
	return s.do(s.t.Context(), writeToken, "POST", "/psp/v1"+path, body, append(headers, "Content-Type", "application/x-www-form-urlencoded")...)
}

// pspError is the error of an answer.
func (a answer) pspError() stripe.Error {
	var body struct {
		Error stripe.Error `json:"error"`
	}
	_ = json.Unmarshal([]byte(a.body), &body) // what is no error compares unequal
	return body.Error
}
