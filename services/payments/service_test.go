package payments_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/einmal/einmal/migrations"
	"github.com/einmal/einmal/pkg/catalogue"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/fsck"
	"github.com/einmal/einmal/pkg/problem"
	"github.com/einmal/einmal/pkg/server"
	"github.com/einmal/einmal/pkg/server/servertest"
	"github.com/einmal/einmal/services/payments"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// patience is for what happens within a second or two; on a busy machine, within many.
const patience = 25 * time.Second

// running is the service on a database of its own, in front of a simulated provider.
type running struct {
	*servertest.Server
	t       *testing.T
	db      *database.DB
	url     string // of the database
	psp     psp
	secrets *servertest.Secrets
}

// start serves from a fresh database until the test ends.
func start(t *testing.T, kind database.Kind, changes ...func(*payments.Config)) running {
	t.Helper()
	return startWith(t, kind, startPSP(t, kind), changes...)
}

// startWith is start in front of a provider that is there.
func startWith(t *testing.T, kind database.Kind, provider psp, changes ...func(*payments.Config)) running {
	t.Helper()
	url := dbtest.URL(t, kind)
	db := dbtest.Connect(t, url, database.Options{})
	if err := migrations.Up(t.Context(), db, payments.Name); err != nil {
		t.Fatal(err)
	}
	r := running{t: t, db: db, url: url, psp: provider, secrets: servertest.KeepSecrets(t, db.SQL())}
	return r.replica(changes...)
}

// replica serves from the same database, in front of the same provider.
func (r running) replica(changes ...func(*payments.Config)) running {
	r.t.Helper()
	config := defaults()
	config.TokensFile, config.Demo = servertest.Tokens(r.t), true // also for requests that a test writes by hand
	config.ProviderURL = r.psp.URL
	for _, change := range changes {
		change(&config)
	}
	r.secrets.Keep(config.ProviderToken, "the provider's token")
	r.secrets.Keep(config.WebhookSecret, "what webhooks are signed with")
	service, err := payments.New(config, payments.Deps{DB: dbtest.Connect(r.t, r.url, database.Options{}), Log: r.secrets.Log})
	if err != nil {
		r.t.Fatal(err)
	}
	r.Server = servertest.Start(r.t, service, r.secrets)
	return r
}

// at is the same, for a subtest.
func (r running) at(t *testing.T) running {
	r.t, r.psp.T = t, t
	return r
}

// secret is what webhooks are signed with.
const secret = "whsec_test"

// defaults are the settings of a service that is told nothing, on any port, but for a provider that it does not wait long for.
func defaults() payments.Config {
	return payments.Config{
		Config:        server.Config{Listen: "127.0.0.1:0", ShutdownGrace: 10 * time.Second},
		Settings:      catalogue.Settings{WaitBudget: 2 * time.Second, ResponseRetention: 720 * time.Hour, TombstoneRetention: 9600 * time.Hour, ApprovalTTL: 30 * time.Minute, ApprovalThreshold: 10000, PurgeEvery: time.Minute, EffectDeadline: 24 * time.Hour},
		Provider:      payments.Provider{WebhookSecret: secret, PaymentMethod: "pm_card_visa", HookAccount: "acme", UnmatchedAfter: 24 * time.Hour},
		ProviderToken: "demo-provider", ProviderReadToken: "demo-provider-read", Namespace: "einmal",
		ProviderTimeout: time.Second, EffectLease: 3 * time.Second, ReconcileEvery: 50 * time.Millisecond, KeyWindow: 24 * time.Hour,
	}
}

// card is a service that charges another card.
func card(method string) func(*payments.Config) {
	return func(c *payments.Config) { c.PaymentMethod = method }
}

// agent is of the account acme; globex is somebody else.
func (r running) agent() servertest.Client  { return r.As("demo-agent") }
func (r running) globex() servertest.Client { return r.As("demo-globex") }

// key is the header of a bare key.
func key(format string, args ...any) string {
	return "Idempotency-Key: " + servertest.Key(fmt.Sprintf(format, args...))
}

// wait asks for the final answer.
const wait = "Prefer: wait=25"

// order, payment and refund are resources as a client reads them.
type order struct {
	ID, Amount, Currency, Payee, State string
	AmountMinor                        int64   `json:"amount_minor"`
	InvoiceReference                   *string `json:"invoice_reference"`
	PaymentID                          string  `json:"payment_id"`
	Version                            int
	Changed                            bool
}

type payment struct {
	ID, Amount, Currency, State, Reference string
	OrderID                                string `json:"order_id"`
	AmountMinor                            int64  `json:"amount_minor"`
	CapturedMinor                          int64  `json:"captured_minor"`
	ReservedMinor                          int64  `json:"refund_reserved_minor"`
	RefundedMinor                          int64  `json:"refunded_minor"`
	RefundableMinor                        int64  `json:"refundable_minor"`
	OperationID                            string `json:"operation_id"`
	OpenOperationID                        string `json:"open_operation_id"`
}

type refund struct {
	ID, Amount, Currency, Reason, State, Reference string
	PaymentID                                      string `json:"payment_id"`
	AmountMinor                                    int64  `json:"amount_minor"`
	OperationID                                    string `json:"operation_id"`
}

// approval is a question to a person as they read it.
type approval struct {
	ID, State, Fingerprint, Reason, Consequence string
	OperationID                                 string `json:"operation_id"`
	RequestedBy                                 string `json:"requested_by"`
	ApprovedBy                                  string `json:"approved_by"`
	DecidedBy                                   string `json:"decided_by"`
	Facts                                       map[string]any
}

// operation is an operation as a client reads it.
type operation struct {
	ID, Type, State, Effect, Target, Reference string
	EffectKey                                  string `json:"effect_key"`
	ReviewID                                   string `json:"review_id"`
	ApprovalID                                 string `json:"approval_id"`
	NextAction                                 string `json:"next_action"`
	Resource                                   struct{ Type, ID, Href string }
	Response                                   struct {
		Status int
		Body   json.RawMessage
	}
	Attempts []struct{ ID, Outcome, Error, Reference string }
}

func (op operation) outcomes() (all []string) {
	for _, a := range op.Attempts {
		all = append(all, a.Outcome)
	}
	return all
}

// read reads a resource as acme's agent.
func read[R any](r running, path string) (resource R) {
	r.t.Helper()
	a := r.agent().Send(r.t, "GET", path, "")
	if a.Status != 200 {
		r.t.Errorf("GET %s: %s", path, a)
		return resource
	}
	a.Decode(r.t, &resource)
	return resource
}

// of decodes the resource of an answer.
func of[R any](t *testing.T, a servertest.Answer) (resource R) {
	t.Helper()
	a.Decode(t, &resource)
	return resource
}

// put makes an order of 12.50 EUR.
func (r running) put(id string) order {
	r.t.Helper()
	return r.putOf(id, "12.50", "EUR")
}

func (r running) putOf(id, amount, currency string) order {
	r.t.Helper()
	a := r.agent().Send(r.t, "PUT", "/v1/orders/"+id, fmt.Sprintf(`{"amount":%q,"currency":%q,"payee":"Bakery Brown"}`, amount, currency), key("put-%s", id))
	if a.Status != 201 {
		r.t.Fatalf("PUT %s: %s", id, a)
	}
	return of[order](r.t, a)
}

// pay sends the creation of a payment of 12.50 EUR.
func (r running) pay(k, order string, headers ...string) servertest.Answer {
	r.t.Helper()
	return r.payOf(k, order, "12.50", "EUR", headers...)
}

func (r running) payOf(k, order, amount, currency string, headers ...string) servertest.Answer {
	r.t.Helper()
	return r.agent().Send(r.t, "POST", "/v1/payments", fmt.Sprintf(`{"order_id":%q,"amount":%q,"currency":%q}`, order, amount, currency), append(headers, key("%s", k))...)
}

func (r running) capture(k, payment, amount string, headers ...string) servertest.Answer {
	r.t.Helper()
	return r.agent().Send(r.t, "POST", "/v1/payments/"+payment+"/capture", fmt.Sprintf(`{"amount":%q}`, amount), append(headers, key("%s", k))...)
}

func (r running) cancel(k, payment string, headers ...string) servertest.Answer {
	r.t.Helper()
	return r.agent().Send(r.t, "POST", "/v1/payments/"+payment+"/cancel", `{}`, append(headers, key("%s", k))...)
}

func (r running) refund(k, payment, amount string, headers ...string) servertest.Answer {
	r.t.Helper()
	return r.agent().Send(r.t, "POST", "/v1/payments/"+payment+"/refunds", fmt.Sprintf(`{"amount":%q,"reason":"It rained."}`, amount), append(headers, key("%s", k))...)
}

// authorized makes an order of 12.50 EUR and authorises its payment.
func (r running) authorized(id string) payment {
	r.t.Helper()
	r.put(id)
	a := r.pay("pay-"+id, id, wait)
	p := of[payment](r.t, a)
	if a.Status != 201 || p.State != "authorized" {
		r.t.Fatalf("pay %s: %s", id, a)
	}
	return p
}

// captured is authorized, and all of it captured.
func (r running) captured(id string) payment {
	r.t.Helper()
	return r.done(r.capture("capture-"+id, r.authorized(id).ID, "12.50", wait), "captured")
}

// done holds an answer to a payment in a state.
func (r running) done(a servertest.Answer, state string) payment {
	r.t.Helper()
	p := of[payment](r.t, a)
	if a.Status/100 != 2 || p.State != state {
		r.t.Fatalf("want a payment that is %s: %s", state, a)
	}
	return p
}

// payment and operation read what is there now.
func (r running) payment(id string) payment {
	r.t.Helper()
	return read[payment](r, "/v1/payments/"+id)
}

func (r running) operation(id string) operation {
	r.t.Helper()
	return read[operation](r, "/v1/operations/"+id)
}

// accepted is the id of the operation that an answer says was accepted, and of its resource.
func (r running) accepted(a servertest.Answer) operation {
	r.t.Helper()
	op := of[operation](r.t, a)
	if a.Status != 202 || op.ID == "" || op.ID != a.Header.Get("Operation-Id") {
		r.t.Fatalf("want it accepted: %s", a)
	}
	return op
}

// ends waits for the end of an operation as a client does.
func (r running) ends(id, state string) operation {
	r.t.Helper()
	op := of[operation](r.t, r.agent().Send(r.t, "GET", "/v1/operations/"+id, "", wait))
	if op.State != state {
		r.t.Errorf("the operation is %+v, want it %s", op, state)
	}
	return op
}

// becomes waits until an operation is as it must be.
func (r running) becomes(id, what string, holds func(operation) bool) (op operation) {
	r.t.Helper()
	deadline := time.After(patience)
	for {
		if op = r.operation(id); holds(op) {
			return op
		}
		select {
		case <-deadline:
			r.t.Fatalf("waited in vain until the operation %s: %+v", what, op)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// approver decides for acme.
func (r running) approver() servertest.Client { return r.As("demo-approver") }

// decide decides about an operation that waits for a person.
func (r running) decide(k string, op operation, decision string) servertest.Answer {
	r.t.Helper()
	a := read[approval](r, "/v1/approvals/"+r.operation(op.ID).ApprovalID)
	return r.decideAs(r.approver(), k, a, decision)
}

func (r running) decideAs(client servertest.Client, k string, a approval, decision string) servertest.Answer {
	r.t.Helper()
	return client.Send(r.t, "POST", "/v1/approvals/"+a.ID+"/decision", fmt.Sprintf(`{"decision":%q,"fingerprint":%q}`, decision, a.Fingerprint), key("%s", k))
}

// approved lets an accepted operation go out, and waits for its end.
func (r running) approved(k string, a servertest.Answer) operation {
	r.t.Helper()
	op := r.accepted(a)
	if op.State != "awaiting_approval" {
		r.t.Errorf("the operation is %+v, want it to wait for a person", op)
	}
	if yes := r.decide("yes-"+k, op, "approve"); yes.Status != 200 {
		r.t.Fatalf("%s", yes)
	}
	return r.ends(op.ID, "succeeded")
}

// expect holds an answer to a status and a problem's code.
func expect(t *testing.T, what any, got servertest.Answer, status int, code problem.Code) problem.Problem {
	t.Helper()
	if got.Status != status {
		t.Errorf("%v: %s; want %d %s", what, got, status, code)
		return problem.Problem{}
	}
	p := got.Problem(t)
	if p.Code != code {
		t.Errorf("%v: %s; want %s", what, got, code)
	}
	return p
}

// count counts rows of a table.
func (r running) count(table string) (n int64) {
	r.t.Helper()
	if err := r.db.Read(r.t.Context()).Table(table).Count(&n).Error; err != nil {
		r.t.Error(err)
	}
	return n
}

// healthy fails the test where fsck finds something, or the provider's ledger what must never be.
func (r running) healthy() {
	r.t.Helper()
	for _, v := range r.fsck() {
		r.t.Errorf("fsck: %s: %s %s", v.Check, v.Account, v.ID)
	}
	r.psp.sound()
}

func (r running) fsck() []fsck.Violation {
	r.t.Helper()
	violations, err := fsck.Run(r.t.Context(), r.db, payments.Checks()...)
	if err != nil {
		r.t.Fatal(err)
	}
	return violations
}
