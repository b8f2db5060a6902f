package payments_test

import (
	"testing"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/outbox"
	"github.com/einmal/einmal/pkg/server/servertest"
	"github.com/einmal/einmal/services/payments"
)

// A restore from a backup can forget a claim whose effect has happened. Made again with the same key it finds that effect: the payment
// has another name here by then, so that the provider knows the key and takes it for that of another request.
func TestAForgottenClaimFindsItsPayment(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		for _, c := range []struct {
			name   string
			before func(s running) // is forgotten
			amount string          // of what is then asked for
			want   string          // of who asks again
			ledger []string
		}{
			{"that is authorized", func(s running) { s.done(s.pay("k", "o", wait), "authorized") }, "12.50", "succeeded", []string{"authorize 1250 EUR"}},
			{"that was never confirmed", neverConfirmed, "12.50", "succeeded", []string{"authorize 1250 EUR"}},
			{"that is captured", func(s running) {
				s.done(s.capture("c", s.done(s.pay("k", "o", wait), "authorized").ID, "12.50", wait), "captured")
			}, "12.50", "succeeded", []string{"authorize 1250 EUR", "capture 1250 EUR"}},
			{"that is canceled", func(s running) {
				s.done(s.cancel("c", s.done(s.pay("k", "o", wait), "authorized").ID, wait), "canceled")
			}, "12.50", "failed", []string{"authorize 1250 EUR", "void 1250 EUR"}},
			{"of another amount, and a person is asked", func(s running) { s.done(s.pay("k", "o", wait), "authorized") }, "9", "unknown", []string{"authorize 1250 EUR"}},
			{"of another amount that was never confirmed, and a person is asked", neverConfirmed, "9", "unknown", nil},
		} {
			t.Run(c.name, func(t *testing.T) {
				s := start(t, kind)
				s.put("o")
				c.before(s)
				s = startWith(t, kind, s.psp) // an empty database
				s.putOf("o", c.amount, "EUR")
				op := s.accepted(s.payOf("k", "o", c.amount, "EUR"))
				op = s.becomes(op.ID, c.want, func(op operation) bool { return op.State == c.want && (c.want != "unknown" || op.ReviewID != "") })
				if p := s.payment(op.Resource.ID); c.want == "succeeded" && p.Reference != s.psp.intents()[0].ID {
					t.Errorf("%+v", p)
				}
				s.psp.has(c.ledger...)
				s.healthy()
			})
		}
	})
}

// neverConfirmed is what a send leaves behind that dies before it confirms.
func neverConfirmed(s running) {
	s.t.Helper()
	of := func(name string) string {
		return outbox.Key("einmal", payments.Name, "acme", idempotency.Key(servertest.Key("k")), name)
	}
	s.psp.does("payment_intents", "amount=1250&currency=eur&capture_method=manual&payment_method=pm_card_visa&metadata[order_id]=o&metadata[account_id]=acme"+
		"&metadata[einmal_effect_key]="+of("authorize"), "Idempotency-Key: "+of("create"))
}
