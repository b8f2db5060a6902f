package payments_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/services/simulator"
	"github.com/einmal/einmal/services/simulator/simtest"
)

// psp is a simulated payment provider: the truth about what was moved.
type psp struct{ simtest.Simulator }

// keys says what a provider does with our effect keys. Where it ignores them, only the protocol and the state of its objects stand
// between a repeated send and a second effect.
var keys = []string{"honour", "ignore"}

// startPSP runs a provider until the test ends. It sends no webhooks.
func startPSP(t *testing.T, kind database.Kind) psp {
	t.Helper()
	return psp{simtest.Start(t, kind)}
}

// treatsKeys makes it honour or ignore keys.
func (p psp) treatsKeys(how string) {
	p.T.Helper()
	p.Abilities(`{"target":"psp","keys":"` + how + `","lookup":true,"close":true}`)
}

// arm makes a fault strike the next call of a kind, once unless it says otherwise.
func (p psp) arm(operation, when, action string, more ...string) {
	p.T.Helper()
	fault := fmt.Sprintf(`"target":"psp","operation":%q,"when":%q,"action":%q`, operation, when, action)
	if !strings.Contains(strings.Join(more, ","), `"times"`) {
		more = append(more, `"times":1`)
	}
	p.Arm("{" + strings.Join(append([]string{fault}, more...), ",") + "}")
}

// struck holds it to a number of faults that have struck: one that has not makes a test of nothing.
func (p psp) struck(want int) {
	p.T.Helper()
	var all []simulator.Fault
	p.Do("GET", "/_faults", "", &all)
	fired := 0
	for _, f := range all {
		fired += int(f.Fired)
	}
	if fired != want {
		p.T.Errorf("%d faults have struck, want %d: %+v", fired, want, all)
	}
}

// ledger is what really happened.
func (p psp) ledger() []simulator.Effect {
	p.T.Helper()
	return p.Ledger("psp")
}

// has holds the ledger to kinds with their amounts, in the order in which they happened: "authorize 1250 EUR".
func (p psp) has(want ...string) {
	p.T.Helper()
	var got []string
	for _, e := range p.ledger() {
		got = append(got, fmt.Sprintf("%s %d %s", e.Kind, e.AmountMinor, e.Currency))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		p.T.Errorf("the provider's ledger (-want +got)\n%s", diff)
	}
}

// calls is how often it was asked for something.
func (p psp) calls(kind string) (n int) {
	p.T.Helper()
	for _, call := range p.Calls("psp") {
		if call.Kind == kind || kind == "" {
			n++
		}
	}
	return n
}

// sound holds the ledger to what must never be otherwise: an order has one charge that was not made void, nothing is captured
// twice or beyond what was authorised, and no more goes back than was captured.
func (p psp) sound() {
	p.T.Helper()
	live, authorized, captured, refunded, keys := map[string]int{}, map[string]int64{}, map[string]int64{}, map[string]int64{}, map[string]int{}
	for _, e := range p.ledger() {
		if keys[e.EffectKey+" "+e.Kind]++; keys[e.EffectKey+" "+e.Kind] > 1 {
			p.T.Errorf("a second effect under one key: %+v", e)
		}
		switch order := e.Account + " " + e.OrderID; e.Kind {
		case "authorize":
			live[order]++
			authorized[e.Reference] = e.AmountMinor
		case "void":
			live[order]--
		case "capture":
			if captured[e.Reference] += e.AmountMinor; captured[e.Reference] > authorized[e.Reference] {
				p.T.Errorf("captured beyond what was authorized: %+v", e)
			}
		case "refund":
			if refunded[e.Parent] += e.AmountMinor; refunded[e.Parent] > captured[e.Parent] {
				p.T.Errorf("refunded beyond what was captured: %+v", e)
			}
		}
	}
	for order, n := range live {
		if n > 1 {
			p.T.Errorf("order %s has %d live charges", order, n)
		}
	}
}

// intent is a payment as the provider shows it.
type intent struct {
	ID, Status string
	Metadata   map[string]string
}

// intents are the provider's payments, the oldest first.
func (p psp) intents() []intent {
	p.T.Helper()
	var page struct{ Data []intent }
	p.Do("GET", "/psp/v1/payment_intents?limit=100", "", &page)
	slices.Reverse(page.Data)
	return page.Data
}

// does makes the provider do something that no operation of ours asks for.
func (p psp) does(path, form string, headers ...string) {
	p.T.Helper()
	p.Do("POST", "/psp/v1/"+path, form, nil, append(headers, "Content-Type: application/x-www-form-urlencoded")...)
}
