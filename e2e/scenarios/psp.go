package scenarios

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/stripe/stripe-go/v82/webhook"

	"github.com/einmal/einmal/e2e/harness"
	"github.com/einmal/einmal/services/simulator"
)

// PSP is a payment provider: the outside world of scenarios about payments.
type PSP struct{ *Outside }

// The kinds of calls to a payment provider that can be struck. What the first four cause has a kind of its own in the ledger.
const (
	confirm  = "confirm"
	capture  = "capture"
	cancel   = "cancel"
	refund   = "refund"
	create   = "create"
	retrieve = "retrieve"
	event    = "webhook"

	authorized = "authorize"
	captured   = "capture"
	voided     = "void"
	refunded   = "refund"
)

// hookSecret is what the provider signs its events with.
const hookSecret = "whsec_scenario"

// PSP starts the payment provider.
func (s *Stage) PSP() *PSP {
	s.psp = &PSP{s.outside("psp")}
	return s.psp
}

// Next arms a fault for the next call of a kind.
func (p *PSP) Next(operation string, when simulator.Moment, action simulator.Action) {
	p.Arm(simulator.Misfortune{Operation: operation, When: when, Action: action})
}

// NextAnswered arms this answer, in place of the provider's own, for the next calls of a kind.
func (p *PSP) NextAnswered(operation string, when simulator.Moment, status int, times int64) {
	p.Arm(simulator.Misfortune{Operation: operation, When: when, Action: simulator.Status, Status: status, Times: times})
}

// Tell makes the provider send its events to a service.
func (p *PSP) Tell(service *harness.Service) {
	p.post("/_webhooks", simulator.Webhook{Target: p.target, URL: service.URL() + "/v1/hooks/psp", Secret: hookSecret}, http.StatusNoContent)
}

// Events are those that the provider has sent, or is to send.
func (p *PSP) Events() (events []simulator.Event) {
	p.stage.must(p.get(p.stage.ctx, "/_webhooks", &events))
	return events
}

// AwaitTold waits until so many events were made and each was accepted as often as it is to be.
func (p *PSP) AwaitTold(n int) {
	p.stage.Await(fmt.Sprintf("%d events are told", n), func() bool {
		events := p.Events()
		for _, e := range events {
			if e.Copies > 0 {
				return false
			}
		}
		return len(events) >= n
	})
}

// Signed sends an event that the provider might have sent, with its signature, and returns the answer.
func (p *PSP) Signed(service *harness.Service, body string) harness.Answer {
	signed := webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{Payload: []byte(body), Secret: hookSecret, Timestamp: time.Now()})
	return p.stage.heard(harness.Do(p.stage.ctx, harness.Call{
		Base: service.URL(), Method: http.MethodPost, Path: "/v1/hooks/psp", Body: body,
		Header: http.Header{"Stripe-Signature": {signed.Header}},
	}))
}

// Itself does something at the provider without the service, as a person at the provider's own pages may.
func (p *PSP) Itself(path, form string) harness.Answer {
	return harness.Do(p.stage.ctx, harness.Call{
		Base: p.URL(), Method: http.MethodPost, Path: "/psp/v1" + path, Token: "demo-provider", Body: form,
		Header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}},
	})
}

// Effect are the effects of a kind under one effect key.
func (p *PSP) Effect(kind, effectKey string) (effects []simulator.Effect) {
	for _, e := range p.Effects(effectKey) {
		if e.Kind == kind {
			effects = append(effects, e)
		}
	}
	return effects
}

// summary is what a ledger says, for messages.
func summary(effects []simulator.Effect) string {
	lines := make([]string, len(effects))
	for i, e := range effects {
		lines[i] = fmt.Sprintf("%s %d %s of %s", e.Kind, e.AmountMinor, e.Currency, e.OrderID)
	}
	return strings.Join(lines, ", ")
}

// callHook is an event that nobody has signed.
func callHook(base, body string) harness.Call {
	return harness.Call{Base: base, Method: http.MethodPost, Path: "/v1/hooks/psp", Body: body}
}
