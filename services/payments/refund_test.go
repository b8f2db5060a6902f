package payments_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/problem"
)

func TestARefund(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)

		t.Run("is made once, and is a resource of its payment", func(t *testing.T) {
			s := s.at(t)
			p := s.captured("o1")
			a := s.refund("k", p.ID, "2.5", wait)
			got := of[refund](t, a)
			want := refund{
				ID: got.ID, PaymentID: p.ID, Amount: "2.50", AmountMinor: 250, Currency: "EUR", Reason: "It rained.", State: "succeeded",
				Reference: s.psp.ledger()[2].Reference, OperationID: a.Header.Get("Operation-Id"),
			}
			href := "/v1/payments/" + p.ID + "/refunds/" + got.ID
			if diff := cmp.Diff(want, got); diff != "" || a.Status != 201 || a.Header.Get("Location") != href {
				t.Errorf("%s (-want +got)\n%s", a, diff)
			}
			if diff := cmp.Diff(want, read[refund](s, href)); diff != "" {
				t.Errorf("read (-want +got)\n%s", diff)
			}
			if again := s.refund("k", p.ID, "2.50"); again.Outcome() != "replayed" || string(again.Body) != string(a.Body) {
				t.Errorf("%s", again)
			}
			if now := s.payment(p.ID); now.RefundedMinor != 250 || now.ReservedMinor != 0 || now.RefundableMinor != 1000 || now.State != "captured" {
				t.Errorf("%+v", now)
			}
			s.psp.has("authorize 1250 EUR", "capture 1250 EUR", "refund 250 EUR")
		})

		t.Run("reserves what it takes from when it is accepted", func(t *testing.T) {
			s := s.at(t)
			p := s.captured("o2")
			s.psp.arm("refund", "before", "delay", `"delay_ms":300`)
			op := s.accepted(s.refund("r2", p.ID, "10"))
			if now := s.payment(p.ID); now.ReservedMinor != 1000 || now.RefundableMinor != 250 || now.RefundedMinor != 0 {
				t.Errorf("%+v", now)
			}
			if got := read[refund](s, op.Resource.Href); got.State != "queued" && got.State != "running" {
				t.Errorf("%+v", got)
			}
			refused := expect(t, "too much", s.refund("r3", p.ID, "2.51"), 409, problem.RefundExceedsRemaining)
			if refused.Remaining != "2.50" {
				t.Errorf("%+v", refused)
			}
			s.ends(op.ID, "succeeded")
			if now := s.payment(p.ID); now.ReservedMinor != 0 || now.RefundedMinor != 1000 {
				t.Errorf("%+v", now)
			}
		})

		t.Run("comes to the last cent and no further", func(t *testing.T) {
			s := s.at(t)
			s.putOf("o3", "179.25", "EUR")
			p := s.done(s.payOf("p3", "o3", "179.25", "EUR", wait), "authorized")
			s.done(s.capture("c3", p.ID, "179.25", wait), "captured")
			if a := s.refund("r4", p.ID, "59.75", wait); a.Status != 201 {
				t.Errorf("%s", a)
			}
			for _, k := range []string{"r4-1", "r4-2"} {
				s.approved(k, s.refund(k, p.ID, "59.75"))
			}
			refused := expect(t, "a cent more", s.refund("r5", p.ID, "0.01"), 409, problem.RefundExceedsRemaining)
			if refused.Remaining != "0.00" {
				t.Errorf("%+v", refused)
			}
		})

		t.Run("of what is not captured is refused, with nothing remaining", func(t *testing.T) {
			s := s.at(t)
			p := s.authorized("o4")
			refused := expect(t, "authorized", s.refund("r6", p.ID, "1"), 409, problem.RefundExceedsRemaining)
			if refused.Remaining != "0.00" {
				t.Errorf("%+v", refused)
			}
			expect(t, "unknown payment", s.refund("r7", "pay_none", "1"), 404, problem.NotFound)
			a := s.globex().Send(t, "POST", "/v1/payments/"+p.ID+"/refunds", `{"amount":"1","reason":"r"}`, key("r8"))
			expect(t, "another account's", a, 404, problem.NotFound)
		})

		t.Run("that the provider declines gives back what it had reserved", func(t *testing.T) {
			s := s.at(t)
			s.put("o5")
			odd := s.replica(card("pm_card_refundFail"))
			p := odd.done(odd.pay("p5", "o5", wait), "authorized")
			odd.done(odd.capture("c5", p.ID, "12.50", wait), "captured")
			a := odd.refund("r9", p.ID, "12.50", wait)
			expect(t, "declined", a, 402, problem.RefundDeclined)
			if now := s.payment(p.ID); now.ReservedMinor != 0 || now.RefundedMinor != 0 || now.RefundableMinor != 1250 {
				t.Errorf("%+v", now)
			}
			if got := read[refund](s, s.operation(a.Header.Get("Operation-Id")).Resource.Href); got.State != "failed" {
				t.Errorf("%+v", got)
			}
		})

		t.Run("is listed with its payment, by state, newest first", func(t *testing.T) {
			s := s.at(t)
			p := s.captured("o6")
			s.refund("r10", p.ID, "1", wait)
			s.approved("r11", s.refund("r11", p.ID, "2"))
			page := read[struct{ Items []refund }](s, "/v1/payments/"+p.ID+"/refunds?state=succeeded")
			if len(page.Items) != 2 || page.Items[0].AmountMinor != 200 {
				t.Errorf("%+v", page)
			}
			if page := read[struct{ Items []refund }](s, "/v1/payments/"+p.ID+"/refunds?state=unknown"); len(page.Items) != 0 {
				t.Errorf("%+v", page)
			}
			expect(t, "state", s.agent().Send(t, "GET", "/v1/payments/"+p.ID+"/refunds?state=done", ""), 422, problem.ValidationFailed)
			expect(t, "no payment", s.agent().Send(t, "GET", "/v1/payments/pay_none/refunds", ""), 404, problem.NotFound)
			other := s.authorized("o7").ID
			expect(t, "another payment's", s.agent().Send(t, "GET", "/v1/payments/"+other+"/refunds/"+page.Items[0].ID, ""), 404, problem.NotFound)
			expect(t, "globex", s.globex().Send(t, "GET", "/v1/payments/"+p.ID+"/refunds/"+page.Items[0].ID, ""), 404, problem.NotFound)
		})
		s.healthy()
	})
}
