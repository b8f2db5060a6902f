package payments_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/problem"
	"github.com/einmal/einmal/pkg/server/servertest"
)

func TestPutOrder(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)
		puts := 0
		put := func(id, body string) servertest.Answer {
			puts++
			return s.agent().Send(t, "PUT", "/v1/orders/"+id, body, key("key-%d", puts))
		}
		const body = `{"amount":"12.50","currency":"EUR","payee":"Bakery Brown","invoice_reference":"R-1"}`

		t.Run("makes it, and says where it is", func(t *testing.T) {
			a := put("A.b_c-1", body)
			got, reference := of[order](t, a), "R-1"
			want := order{
				ID: "A.b_c-1", Amount: "12.50", AmountMinor: 1250, Currency: "EUR", Payee: "Bakery Brown", InvoiceReference: &reference,
				State: "open", Version: 1, Changed: true,
			}
			if diff := cmp.Diff(want, got); diff != "" || a.Status != 201 || a.Header.Get("Location") != "/v1/orders/A.b_c-1" {
				t.Errorf("%s (-want +got)\n%s", a, diff)
			}
		})

		t.Run("said again, by value, changes nothing", func(t *testing.T) {
			a := put("A.b_c-1", `{"payee":"Bakery Brown","currency":"EUR","amount":"12.5","invoice_reference":"R-1"}`)
			if got := of[order](t, a); a.Status != 200 || got.Changed || got.Version != 1 {
				t.Errorf("%s", a)
			}
		})

		t.Run("says what it is told last", func(t *testing.T) {
			for _, other := range []string{
				`{"amount":"12.51","currency":"EUR","payee":"Bakery Brown","invoice_reference":"R-1"}`,
				`{"amount":"12.51","currency":"USD","payee":"Bakery Brown","invoice_reference":"R-1"}`,
				`{"amount":"12.51","currency":"USD","payee":"Bakery White","invoice_reference":"R-1"}`,
				`{"amount":"12.51","currency":"USD","payee":"Bakery White","invoice_reference":"R-2"}`,
				`{"amount":"12.51","currency":"USD","payee":"Bakery White"}`,
			} {
				if a := put("A.b_c-1", other); a.Status != 200 || !of[order](t, a).Changed {
					t.Errorf("%s: %s", other, a)
				}
			}
			got := read[order](s, "/v1/orders/A.b_c-1")
			if got.Version != 6 || got.Amount != "12.51" || got.Currency != "USD" || got.InvoiceReference != nil {
				t.Errorf("%+v", got)
			}
		})

		t.Run("stays as it is once a payment refers to it, also one that has failed", func(t *testing.T) {
			s := s.at(t)
			put("frozen", body)
			poor := s.replica(card("pm_card_chargeDeclined"))
			expect(t, "declined", poor.pay("p", "frozen", wait), 402, problem.PaymentDeclined)
			expect(t, "other", put("frozen", strings.Replace(body, "12.50", "12.49", 1)), 409, problem.OrderFrozen)
			expect(t, "another payee", put("frozen", strings.Replace(body, "Brown", "White", 1)), 409, problem.OrderFrozen)
			if a := put("frozen", body); a.Status != 200 || of[order](t, a).Changed {
				t.Errorf("the same: %s", a)
			}
			if got := read[order](s, "/v1/orders/frozen"); got.Amount != "12.50" || got.State != "open" {
				t.Errorf("%+v", got)
			}
		})

		t.Run("is not changed by a refused payment", func(t *testing.T) {
			s := s.at(t)
			put("free", body)
			expect(t, "mismatch", s.payOf("m", "free", "1", "EUR"), 409, problem.OrderMismatch)
			if a := put("free", strings.Replace(body, "12.50", "1", 1)); a.Status != 200 || !of[order](t, a).Changed {
				t.Errorf("%s", a)
			}
		})

		t.Run("refuses what is no name", func(t *testing.T) {
			for _, id := range []string{"a%20b", "%C3%A9", "a:b", strings.Repeat("a", 65), "a,b", "a%0Ab"} {
				p := expect(t, id, put(id, body), 422, problem.ValidationFailed)
				if len(p.Errors) != 1 || p.Errors[0].Pointer != "" || !strings.Contains(p.Errors[0].Detail, "1 to 64") {
					t.Errorf("%s: %+v", id, p.Errors)
				}
			}
			if a := put(strings.Repeat("a", 64), body); a.Status != 201 {
				t.Errorf("the longest: %s", a)
			}
		})

		t.Run("refuses what is no order, telling everything", func(t *testing.T) {
			s := s.at(t)
			for body, want := range map[string][]string{
				`{}`: {"/amount", "/currency", "/payee"},
				`{"amount":"1","currency":"EUR","payee":""}`:                                       {"/payee"},
				`{"amount":"1","currency":"EUR","payee":"` + strings.Repeat("é", 256) + `"}`:       {"/payee"},
				`{"amount":"1","currency":"EUR","payee":"p","invoice_reference":""}`:               {"/invoice_reference"},
				`{"amount":"1","currency":"EUR","payee":"p","invoice_reference":null}`:             {"/invoice_reference"},
				`{"amount":"1","currency":"EUR","payee":"p","Amount":"2"}`:                         {"/Amount"},
				`{"amount":"1","currency":"EUR","payee":"p","metadata":{"n":9007199254740993}}`:    {"/metadata/n", "/metadata"},
				`{"amount":"-","currency":"eur","payee":"p"}`:                                      {"/amount", "/currency"},
				`{"amount":"1","currency":"EUR","payee":"p","version":1,"state":"paid","id":"me"}`: {"/version", "/state", "/id"},
			} {
				p := expect(t, body, put("bad", body), 422, problem.ValidationFailed)
				var got []string
				for _, v := range p.Errors {
					got = append(got, v.Pointer)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s (-want +got)\n%s", body, diff)
				}
			}
			if a := s.agent().Send(t, "GET", "/v1/orders/bad", ""); a.Status != 404 {
				t.Errorf("%s", a)
			}
		})

		t.Run("belongs to its account", func(t *testing.T) {
			s := s.at(t)
			if a := s.globex().Send(t, "GET", "/v1/orders/A.b_c-1", ""); a.Status != 404 {
				t.Errorf("%s", a)
			}
			a := s.globex().Send(t, "PUT", "/v1/orders/A.b_c-1", body, key("theirs"))
			if a.Status != 201 || of[order](t, a).Version != 1 {
				t.Errorf("%s", a)
			}
			if a := s.globex().Send(t, "POST", "/v1/payments", `{"order_id":"free","amount":"1","currency":"EUR"}`, key("p")); a.Status != 404 {
				t.Errorf("paid another's order: %s", a)
			}
		})
		s.healthy()
	})
}

func TestListOrders(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)
		for _, id := range []string{"z", "m", "a"} { // not in the order of their names
			s.put(id)
		}
		s.captured("paid")
		s.put("busy")
		s.psp.arm("confirm", "before", "delay", `"delay_ms":5000`)
		s.accepted(s.pay("p", "busy"))

		ids := func(query string) (all []string, next string) {
			t.Helper()
			page := read[struct {
				Items      []order
				NextCursor string `json:"next_cursor"`
			}](s, "/v1/orders"+query)
			for _, o := range page.Items {
				all = append(all, o.ID)
			}
			return all, page.NextCursor
		}
		for query, want := range map[string][]string{
			"":            {"busy", "paid", "a", "m", "z"},
			"?state=open": {"a", "m", "z"},
			"?state=busy": {"busy"},
			"?state=paid": {"paid"},
		} {
			got, _ := ids(query)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got)\n%s", query, diff)
			}
		}
		first, next := ids("?limit=2")
		second, next := ids("?limit=2&cursor=" + next)
		third, end := ids("?limit=2&cursor=" + next)
		if got := fmt.Sprint(first, second, third, end); got != "[busy paid] [a m] [z]" {
			t.Errorf("pages %s", got)
		}
		for _, query := range []string{"?state=shut", "?payee=x", "?state="} {
			expect(t, query, s.agent().Send(t, "GET", "/v1/orders"+query, ""), 422, problem.ValidationFailed)
		}
	})
}
