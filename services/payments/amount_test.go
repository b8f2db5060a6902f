package payments_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/problem"
	"github.com/einmal/einmal/pkg/server/servertest"
	"github.com/einmal/einmal/services/payments"
)

// badAmounts are JSON values that are no amount of the currency, each by a kind that somebody has met.
var badAmounts = map[string][]string{
	"EUR": {
		`0`, `1`, `-1`, `12.50`, `1e3`, `true`, `null`, `[]`, `{}`, `["1"]`, // no text
		`""`, `" "`, `" 1"`, `"1 "`, `"1\n"`, `"\t1"`, `"x"`, `"١"`, `"１"`, `"½"`,
		`"-1"`, `"+1"`, `"-0"`, `"1e3"`, `"1E3"`, `"1e-2"`, `"1e999999999"`, `"0x10"`, `"0b1"`, `"1_000"`, `"1,000"`, `"1.000,00"`, `"1 000"`,
		`"NaN"`, `"Infinity"`, `"-Infinity"`, `"null"`, `"€1"`, `"1 EUR"`, `"1EUR"`, `"1-"`, `"(1)"`,
		`"."`, `".5"`, `"5."`, `"1.2.3"`, `"1..2"`, `"01"`, `"00"`, `"00.5"`, `"0001.00"`,
		`"0"`, `"0.0"`, `"0.00"`,
		`"12.505"`, `"12.500"`, `"0.001"`, `"12.5000000000"`,
		`"10000000000000"`, `"10000000000000.00"`, `"9007199254740993"`, `"92233720368547758.07"`, `"9223372036854775808"`,
		`"99999999999999999999999999999999"`, `"` + strings.Repeat("9", 100_000) + `"`, `"0.` + strings.Repeat("0", 100_000) + `1"`,
	},
	"JPY": {`"20.00"`, `"20.0"`, `"0.5"`, `"1000000000000000"`},
	"KWD": {`"1.5000"`, `"1.0001"`, `"1000000000000"`},
	"CLF": {`"1.00000"`, `"100000000000"`},
}

// goodAmounts are at the limits, with what they are in minor units.
var goodAmounts = map[string]map[string]int64{
	"EUR": {"0.01": 1, "0.1": 10, "1": 100, "19.99": 1999, "0.29": 29, "1.1": 110, "9999999999999.99": 999_999_999_999_999},
	"JPY": {"1": 1, "2000": 2000, "999999999999999": 999_999_999_999_999},
	"KWD": {"0.001": 1, "92": 92_000, "999999999999.999": 999_999_999_999_999},
	"CLF": {"0.0001": 1, "1.5": 15_000},
}

func TestBadAmounts(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)
		targets := map[string]string{} // a captured payment of each currency, and an authorized one
		for currency := range badAmounts {
			targets["refunds "+currency], targets["capture "+currency] = "", ""
			for what := range targets {
				if strings.HasSuffix(what, currency) {
					id := strings.ReplaceAll(what, " ", "-")
					s.putOf(id, "20", currency)
					p := s.done(s.payOf("p-"+id, id, "20", currency, wait), "authorized")
					if targets[what] = p.ID; strings.HasPrefix(what, "refunds") {
						s.done(s.capture("c-"+id, p.ID, "20", wait), "captured")
					}
				}
			}
		}
		operations, ledger := s.count("operations"), len(s.psp.ledger())
		sent := 0
		send := func(method, path, format string, args ...any) servertest.Answer {
			sent++
			return s.agent().Send(t, method, path, fmt.Sprintf(format, args...), key("bad-%d", sent))
		}
		for currency, amounts := range badAmounts {
			for _, amount := range amounts {
				short := amount[:min(len(amount), 40)]
				for what, a := range map[string]servertest.Answer{
					"order":   send("PUT", "/v1/orders/new", `{"amount":%s,"currency":%q,"payee":"p"}`, amount, currency),
					"payment": send("POST", "/v1/payments", `{"order_id":"new","amount":%s,"currency":%q}`, amount, currency),
					"capture": send("POST", "/v1/payments/"+targets["capture "+currency]+"/capture", `{"amount":%s}`, amount),
					"refund":  send("POST", "/v1/payments/"+targets["refunds "+currency]+"/refunds", `{"amount":%s,"reason":"r"}`, amount),
				} {
					p := expect(t, what+" of "+short+" "+currency, a, 422, problem.ValidationFailed)
					if len(p.Errors) != 1 || p.Errors[0].Pointer != "/amount" || len(p.Errors[0].Detail) < 10 || len(p.Errors[0].Detail) > 200 {
						t.Errorf("%s of %s %s: %+v", what, short, currency, p.Errors)
					}
				}
			}
		}
		for _, currency := range []string{`""`, `"eur"`, `"Eur"`, `"EURO"`, `"EU"`, `"€"`, `"XXX"`, `"XAU"`, `"XTS"`, `"DEM"`, `"ABC"`, `" EUR"`, `978`, `null`, `["EUR"]`} {
			for what, a := range map[string]servertest.Answer{
				"order":   send("PUT", "/v1/orders/new", `{"amount":"1","currency":%s,"payee":"p"}`, currency),
				"payment": send("POST", "/v1/payments", `{"order_id":"new","amount":"1","currency":%s}`, currency),
			} {
				p := expect(t, what+" in "+currency, a, 422, problem.ValidationFailed)
				if len(p.Errors) != 1 || p.Errors[0].Pointer != "/currency" {
					t.Errorf("%s in %s: %+v", what, currency, p.Errors)
				}
			}
		}
		for _, body := range []string{`{"amount":"1","amount":"99999","reason":"r"}`, `{"amount":"1","reason":"r"}}`, `{"amount":"1`} {
			expect(t, body, send("POST", "/v1/payments/"+targets["refunds EUR"]+"/refunds", "%s", body), 400, problem.MalformedBody)
		}
		p := expect(t, "Amount", send("POST", "/v1/payments/"+targets["refunds EUR"]+"/refunds", `{"Amount":"1","amount_minor":100,"currency":"EUR","reason":"r"}`), 422, problem.ValidationFailed)
		if len(p.Errors) != 3 { // a member in the wrong case is one error, not also a missing one
			t.Errorf("%+v", p.Errors)
		}
		if n := s.count("operations"); n != operations || len(s.psp.ledger()) != ledger {
			t.Errorf("%d operations more, %d effects more", n-operations, len(s.psp.ledger())-ledger)
		}
		s.healthy()
	})
}

func TestGoodAmounts(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind, func(c *payments.Config) { c.ApprovalThreshold = 1_000_000_000_000_000 }) // about none of these a person is asked
		n := 0
		for currency, amounts := range goodAmounts {
			for text, minor := range amounts {
				n++
				id := fmt.Sprintf("o-%d", n)
				if o := s.putOf(id, text, currency); o.AmountMinor != minor || o.Currency != currency {
					t.Errorf("%s %s: %+v", text, currency, o)
				}
				p := s.done(s.payOf("p-"+id, id, text, currency, wait), "authorized")
				p = s.done(s.capture("c-"+id, p.ID, text, wait), "captured")
				if p.AmountMinor != minor || p.CapturedMinor != minor || p.RefundableMinor != minor {
					t.Errorf("%s %s: %+v", text, currency, p)
				}
				if a := s.refund("r-"+id, p.ID, text, wait); a.Status != 201 || of[refund](t, a).AmountMinor != minor || of[refund](t, a).Amount != p.Amount {
					t.Errorf("%s %s: %s", text, currency, a)
				}
			}
		}
		for _, e := range s.psp.ledger() {
			found := false
			for text, minor := range goodAmounts[e.Currency] {
				found = found || minor == e.AmountMinor && text != ""
			}
			if !found {
				t.Errorf("the provider was told %+v", e)
			}
		}
		if len(s.psp.ledger()) != 3*n {
			t.Errorf("%d effects", len(s.psp.ledger()))
		}
		s.healthy()
	})
}

// The order of the currencies' digits is the provider's too, or it is not asked.
func TestCurrenciesThatTheProviderCountsOtherwise(t *testing.T) {
	s := start(t, database.SQLite)
	for _, currency := range []string{"ISK", "UGX", "MGA"} {
		s.putOf(currency, "100", currency)
		a := s.payOf("p-"+currency, currency, "100", currency, wait)
		expect(t, currency, a, 409, problem.EffectRefused)
	}
	if n := s.psp.calls(""); n != 0 {
		t.Errorf("%d calls", n)
	}
	s.healthy()
}

func TestAmountsAreComparedByValue(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)
		put := func(amount string) servertest.Answer {
			return s.agent().Send(t, "PUT", "/v1/orders/o", `{"amount":"`+amount+`","currency":"EUR","payee":"p"}`, key("put"))
		}
		first := put("12.5")
		for _, same := range []string{"12.50", "12.5"} {
			if a := put(same); a.Outcome() != "replayed" || string(a.Body) != string(first.Body) {
				t.Errorf("%s: %s", same, a)
			}
		}
		expect(t, "another", put("12.51"), 422, problem.IdempotencyKeyReused)
		paid := s.payOf("pay", "o", "12.5", "EUR", wait)
		if a := s.payOf("pay", "o", "12.50", "EUR"); a.Outcome() != "replayed" || string(a.Body) != string(paid.Body) {
			t.Errorf("%s", a)
		}
		p := of[payment](t, paid)
		captured := s.capture("capture", p.ID, "12.5", wait)
		if a := s.capture("capture", p.ID, "12.50"); a.Outcome() != "replayed" || string(a.Body) != string(captured.Body) {
			t.Errorf("%s", a)
		}
		refunded := s.refund("refund", p.ID, "1", wait)
		for _, same := range []string{"1.0", "1.00"} {
			if a := s.refund("refund", p.ID, same); a.Outcome() != "replayed" || string(a.Body) != string(refunded.Body) {
				t.Errorf("%s", a)
			}
		}
		s.psp.has("authorize 1250 EUR", "capture 1250 EUR", "refund 100 EUR")

		t.Run("and fingerprints count minor units", func(t *testing.T) {
			s := s.at(t)
			for path, body := range map[string]string{
				"/v1/payments":                      `{"order_id":"o","amount":"12.5","currency":"EUR"}`,
				"/v1/payments/" + p.ID + "/capture": `{"amount":"12.5"}`,
				"/v1/payments/" + p.ID + "/refunds": `{"amount":"1.0","reason":"It rained."}`,
			} {
				var got struct{ Fingerprint, Canonical string }
				ask := `{"method":"POST","path":"` + path + `","body":` + body + `}`
				s.agent().Send(t, "POST", "/v1/fingerprints", ask).Decode(t, &got)
				var n int64
				if err := s.db.Read(t.Context()).Table("operations").Where("fingerprint = ?", got.Fingerprint).Count(&n).Error; err != nil || n != 1 || !strings.Contains(got.Canonical, `"amount_minor":1`) {
					t.Errorf("%s: %d operations have %+v, %v", path, n, got, err)
				}
			}
			bad := s.agent().Send(t, "POST", "/v1/fingerprints", `{"method":"POST","path":"/v1/payments/`+p.ID+`/capture","body":{"amount":"1.234"}}`)
			if v := expect(t, "bad", bad, 422, problem.ValidationFailed).Errors; len(v) != 1 || v[0].Pointer != "/body/amount" {
				t.Errorf("%+v", v)
			}
			expect(t, "none", s.agent().Send(t, "POST", "/v1/fingerprints", `{"method":"POST","path":"/v1/payments/pay_1/capture","body":{"amount":"1"}}`), 404, problem.NotFound)
		})
	})
}
