package scenarios

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/einmal/einmal/e2e/harness"
)

// order is the command of PUT /v1/orders/{id}.
type order struct {
	ID       string `json:"-"`
	Amount   string `json:"amount"`
	Currency string `json:"currency"`
	Payee    string `json:"payee"`
}

// Act is one operation on money: an order is paid, a payment captured, canceled or refunded.
type Act struct {
	Kind      string // of its effect in the ledger
	Path      string // what was sent
	Key       string
	Body      string
	Operation string
	Resource  string // the payment, or the refund
	EffectKey string
}

// NewOrder puts an order that no other resembles.
func (t *Till) NewOrder(replica *harness.Service) order {
	return t.PutOrder(replica, "100.00", "EUR")
}

// PutOrder puts an order about this amount.
func (t *Till) PutOrder(replica *harness.Service, amount, currency string) order {
	o := order{ID: fmt.Sprintf("order-%d-%08x", t.keys, t.rand.Uint32()), Amount: amount, Currency: currency, Payee: "Hammer & Nail"}
	answer := t.Put(replica, t.NewKey(), o)
	t.Check(answer.Err == nil && answer.Status == http.StatusCreated, "an order: got %v, want 201", answer)
	return o
}

// Put sends PUT /v1/orders/{id} once.
func (t *Till) Put(replica *harness.Service, key string, o order) harness.Answer {
	return t.Do(harness.Call{Base: replica.URL(), Method: http.MethodPut, Path: "/v1/orders/" + o.ID, Key: key, Body: encode(o)})
}

// OrderState is where an order stands.
func (t *Till) OrderState(replica *harness.Service, o order) string {
	return t.Do(harness.Call{Base: replica.URL(), Method: http.MethodGet, Path: "/v1/orders/" + o.ID}).Text("state")
}

// Pays is the act that pays an order, not yet sent.
func (t *Till) Pays(o order) *Act {
	return &Act{Kind: authorized, Path: "/v1/payments", Key: t.NewKey(), Body: encode(map[string]string{
		"order_id": o.ID, "amount": o.Amount, "currency": o.Currency,
	})}
}

// Captures is the act that captures an amount of a payment.
func (t *Till) Captures(payment *Act, amount string) *Act {
	return &Act{Kind: captured, Path: "/v1/payments/" + payment.Resource + "/capture", Key: t.NewKey(), Body: encode(map[string]string{"amount": amount})}
}

// Cancels is the act that cancels a payment.
func (t *Till) Cancels(payment *Act) *Act {
	return &Act{Kind: voided, Path: "/v1/payments/" + payment.Resource + "/cancel", Key: t.NewKey(), Body: "{}"}
}

// Refunds is the act that refunds an amount of a payment.
func (t *Till) Refunds(payment *Act, amount string) *Act {
	return &Act{Kind: refunded, Path: "/v1/payments/" + payment.Resource + "/refunds", Key: t.NewKey(), Body: encode(map[string]string{
		"amount": amount, "reason": "it broke on the first nail",
	})}
}

// Ask sends the act once, and returns the answer.
func (t *Till) Ask(replica *harness.Service, a *Act) harness.Answer {
	return t.Do(harness.Call{Base: replica.URL(), Method: http.MethodPost, Path: a.Path, Key: a.Key, Body: a.Body})
}

// Begin sends the act, which must be accepted.
func (t *Till) Begin(replica *harness.Service, a *Act) *Act {
	t.Accepted(a, t.Ask(replica, a))
	return a
}

// Accepted ends the scenario unless the answer accepts the act.
func (t *Till) Accepted(a *Act, answer harness.Answer) {
	t.Check(answer.Err == nil && answer.Status == http.StatusAccepted && answer.Outcome() == "accepted", "%s: got %v, want 202 accepted", a.Path, answer)
	a.Operation = answer.Header.Get("Operation-Id")
	a.Resource = t.Text("SELECT resource_id FROM operations WHERE id = $1", a.Operation)
	a.EffectKey = t.Text("SELECT effect_key FROM effects WHERE operation_id = $1", a.Operation)
}

// State asks for the act's operation.
func (t *Till) State(replica *harness.Service, a *Act) harness.Answer {
	return t.Do(harness.Call{Base: replica.URL(), Method: http.MethodGet, Path: "/v1/operations/" + a.Operation})
}

// AwaitState waits until the act's operation is in a state.
func (t *Till) AwaitState(replica *harness.Service, a *Act, state string) {
	t.Await(a.Path+" is "+state, func() bool { return t.State(replica, a).Text("state") == state })
}

// AskAs sends the act once as somebody else than the agent.
func (t *Till) AskAs(token string, replica *harness.Service, a *Act) harness.Answer {
	return t.Do(harness.Call{Base: replica.URL(), Method: http.MethodPost, Path: a.Path, Token: token, Key: a.Key, Body: a.Body})
}

// Done begins the act, lets a person say yes if they are asked, and waits until it has succeeded.
func (t *Till) Done(replica *harness.Service, a *Act) *Act {
	if t.Begin(replica, a); t.State(replica, a).Text("state") == "awaiting_approval" {
		t.Approve(replica, a.Operation)
	}
	t.Succeeds(replica, a)
	return a
}

// Withdrawn waits until the act has ended, and ends the scenario unless it is canceled with this problem, and the provider has done nothing.
func (t *Till) Withdrawn(replica *harness.Service, a *Act, code string) {
	op := t.ended(replica, a)
	t.Check(op.Text("state") == "canceled" && op.Text("effect") == "none", "%s has become %v, want it canceled", a.Path, op)
	found := t.psp.Effect(a.Kind, a.EffectKey)
	t.Check(len(found) == 0, "%s is canceled, and the provider has %s", a.Path, summary(found))
	answer := t.Ask(replica, a)
	t.Check(answer.Outcome() == "replayed" && answer.Text("code") == code, "%s sent again: got %v, want the replay of %s", a.Path, answer, code)
}

// Succeeds waits until the act has ended, and ends the scenario unless it has succeeded, and the provider has done it once.
func (t *Till) Succeeds(replica *harness.Service, a *Act) {
	op := t.ended(replica, a)
	t.Check(op.Text("state") == "succeeded" && op.Text("effect") == "applied", "%s has become %v, want it succeeded", a.Path, op)
	found := t.psp.Effect(a.Kind, a.EffectKey)
	t.Check(len(found) == 1 && found[0].Reference == op.Text("reference"), "the provider has %s, want %s once under the reference %q", summary(found), a.Kind, op.Text("reference"))
}

// Fails waits until the act has ended, and ends the scenario unless it has come to nothing with this problem, and the provider has done nothing.
func (t *Till) Fails(replica *harness.Service, a *Act, code string) harness.Answer {
	op := t.ended(replica, a)
	t.Check(op.Text("state") == "failed" && op.Text("effect") == "none", "%s has become %v, want it failed", a.Path, op)
	found := t.psp.Effect(a.Kind, a.EffectKey)
	t.Check(len(found) == 0, "%s has failed, and the provider has %s", a.Path, summary(found))
	answer := t.Ask(replica, a)
	t.Check(answer.Outcome() == "replayed" && answer.Text("code") == code, "%s sent again: got %v, want the replay of %s", a.Path, answer, code)
	return op
}

// ended waits until the act's operation is final or with a person. Looks that come at growing intervals are asked for.
func (t *Till) ended(replica *harness.Service, a *Act) (op harness.Answer) {
	t.Await(a.Path+" is final or with a person", func() bool {
		op = t.State(replica, a)
		switch op.Text("state") {
		case "succeeded", "failed", "canceled":
			return true
		case "unknown":
			if op.Text("review_id") != "" {
				return true
			}
			t.Do(harness.Call{Base: replica.URL(), Method: http.MethodPost, Path: "/v1/operations/" + a.Operation + "/reconcile", Key: t.NewKey(), Body: "{}"})
		}
		return false
	})
	return op
}

func encode(body any) string {
	text, err := json.Marshal(body)
	if err != nil {
		panic(err) // texts only
	}
	return string(text)
}
