package payments_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/migrations"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/services/simulator"
)

// psp is a simulated payment provider: the truth about what was moved.
type psp struct {
	t   *testing.T
	url string
}

// keys says what a provider does with our effect keys. Where it ignores them, only the protocol and the state of its objects stand
// between a repeated send and a second effect.
var keys = []string{"honour", "ignore"}

// startPSP runs a simulator until the test ends. It sends no webhooks.
func startPSP(t *testing.T, kind database.Kind) psp {
	t.Helper()
	db := dbtest.Connect(t, dbtest.URL(t, kind), database.Options{})
	if err := migrations.Up(t.Context(), db, simulator.Name); err != nil {
		t.Fatal(err)
	}
	config := simulator.Config{Listen: "127.0.0.1:0", Token: "demo-provider", ReadToken: "demo-provider-read", ShutdownGrace: patience}
	service, err := simulator.New(config, simulator.Deps{DB: db, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := service.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- service.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("provider: %v", err)
		}
	})
	return psp{t, "http://" + service.Addr()}
}

// treatsKeys makes it honour or ignore keys.
func (p psp) treatsKeys(how string) {
	p.t.Helper()
	p.do("POST", "/_abilities", `{"target":"psp","keys":"`+how+`","lookup":true,"close":true}`, nil)
}

// arm makes a fault strike the next call of a kind, once unless it says otherwise.
func (p psp) arm(operation, when, action string, more ...string) {
	p.t.Helper()
	fault := fmt.Sprintf(`"target":"psp","operation":%q,"when":%q,"action":%q`, operation, when, action)
	if !strings.Contains(strings.Join(more, ","), `"times"`) {
		more = append(more, `"times":1`)
	}
	p.do("POST", "/_faults", "{"+strings.Join(append([]string{fault}, more...), ",")+"}", nil)
}

// struck holds it to a number of faults that have struck: one that has not makes a test of nothing.
func (p psp) struck(want int) {
	p.t.Helper()
	var all []simulator.Fault
	p.do("GET", "/_faults", "", &all)
	fired := 0
	for _, f := range all {
		fired += int(f.Fired)
	}
	if fired != want {
		p.t.Errorf("%d faults have struck, want %d: %+v", fired, want, all)
	}
}

// ledger is what really happened.
func (p psp) ledger() (all []simulator.Effect) {
	p.t.Helper()
	p.do("GET", "/_ledger?target=psp", "", &all)
	return all
}

// has holds the ledger to kinds with their amounts, in the order in which they happened: "authorize 1250 EUR".
func (p psp) has(want ...string) {
	p.t.Helper()
	var got []string
	for _, e := range p.ledger() {
		got = append(got, fmt.Sprintf("%s %d %s", e.Kind, e.AmountMinor, e.Currency))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		p.t.Errorf("the provider's ledger (-want +got)\n%s", diff)
	}
}

// calls is how often it was asked for something.
func (p psp) calls(kind string) (n int) {
	p.t.Helper()
	var all []simulator.Call
	p.do("GET", "/_calls?target=psp", "", &all)
	for _, call := range all {
		if call.Kind == kind || kind == "" {
			n++
		}
	}
	return n
}

// sound holds the ledger to what must never be otherwise: an order has one charge that was not made void, nothing is captured
// twice or beyond what was authorised, and no more goes back than was captured.
func (p psp) sound() {
	p.t.Helper()
	live, authorized, captured, refunded, keys := map[string]int{}, map[string]int64{}, map[string]int64{}, map[string]int64{}, map[string]int{}
	for _, e := range p.ledger() {
		if keys[e.EffectKey+" "+e.Kind]++; keys[e.EffectKey+" "+e.Kind] > 1 {
			p.t.Errorf("a second effect under one key: %+v", e)
		}
		switch order := e.Account + " " + e.OrderID; e.Kind {
		case "authorize":
			live[order]++
			authorized[e.Reference] = e.AmountMinor
		case "void":
			live[order]--
		case "capture":
			if captured[e.Reference] += e.AmountMinor; captured[e.Reference] > authorized[e.Reference] {
				p.t.Errorf("captured beyond what was authorized: %+v", e)
			}
		case "refund":
			if refunded[e.Parent] += e.AmountMinor; refunded[e.Parent] > captured[e.Parent] {
				p.t.Errorf("refunded beyond what was captured: %+v", e)
			}
		}
	}
	for order, n := range live {
		if n > 1 {
			p.t.Errorf("order %s has %d live charges", order, n)
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
	p.t.Helper()
	var page struct{ Data []intent }
	p.do("GET", "/psp/v1/payment_intents?limit=100", "", &page)
	slices.Reverse(page.Data)
	return page.Data
}

// does makes the provider do something that no operation of ours asks for.
func (p psp) does(path, form string, headers ...string) {
	p.t.Helper()
	p.do("POST", "/psp/v1/"+path, form, nil, headers...)
}

func (p psp) do(method, path, body string, into any, headers ...string) {
	p.t.Helper()
	request, err := http.NewRequestWithContext(p.t.Context(), method, p.url+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer demo-provider")
	if !strings.HasPrefix(body, "{") {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if into != nil {
		err = errors.Join(err, json.Unmarshal(text, into))
	}
	if err != nil || response.StatusCode >= 300 {
		p.t.Fatalf("%s %s: %d %s, %v", method, path, response.StatusCode, text, err)
	}
}
