package simulator_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v82"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
)

const create = "amount=1250&currency=eur&capture_method=manual&payment_method=pm_card_visa"

func TestIdempotencyKeys(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		t.Run("give the same answer again, also when the object has changed", func(t *testing.T) {
			s := openShop(t, kind)
			first := s.form("/payment_intents", create, "Idempotency-Key", "k")
			must(s.confirm("k-authorize", first.member("id")))(t)
			again := s.form("/payment_intents", create, "Idempotency-Key", "k")
			if again.body != first.body || first.replayed() || !again.replayed() {
				t.Errorf("first %v, again %v", first, again)
			}
			reordered := s.form("/payment_intents", "payment_method=pm_card_visa&capture_method=manual&currency=eur&amount=1250", "Idempotency-Key", "k")
			if reordered.body != first.body {
				t.Errorf("the same parameters in another order: %v", reordered)
			}
		})

		t.Run("count a second send of a refund once", func(t *testing.T) {
			s := openShop(t, kind)
			id := s.captured("k", 1250)
			first, second := must(s.refund("r", id, 100))(t), must(s.refund("r", id, 100))(t)
			if first.ID != second.ID || s.moved("refund") != 100 {
				t.Errorf("%s and %s; refunds %d", first.ID, second.ID, s.moved("refund"))
			}
		})

		t.Run("refuse other parameters, and other requests", func(t *testing.T) {
			s := openShop(t, kind)
			id := s.form("/payment_intents", create, "Idempotency-Key", "k").member("id")
			for path, body := range map[string]string{
				"/payment_intents":                    "amount=1251&currency=eur&capture_method=manual&payment_method=pm_card_visa",
				"/payment_intents/" + id + "/confirm": "",
				"/payment_intents/" + id + "/cancel":  "",
				"/payment_intents/pi_none/confirm":    "",
				"/refunds":                            "payment_intent=" + id,
			} {
				a := s.form(path, body, "Idempotency-Key", "k")
				if a.status != http.StatusBadRequest || a.pspError().Type != stripe.ErrorTypeIdempotency {
					t.Errorf("POST %s: %v", path, a)
				}
			}
			s.checkLedger()
		})

		t.Run("keep a refusal, although it would not be one any more", func(t *testing.T) {
			s := openShop(t, kind)
			id := must(s.create("k", "pm_card_visa"))(t).ID
			for range 2 {
				_, err := s.capture("early", id, 1250)
				checkUnexpected(t, err, "requires_confirmation")
				if s.moved("authorize") == 0 {
					must(s.confirm("k-authorize", id))(t)
				}
			}
			must(s.capture("later", id, 1250))(t)
		})

		t.Run("are forgotten after their window", func(t *testing.T) {
			s := openShop(t, kind)
			id := s.captured("k", 1250)
			must(s.refund("r", id, 100))(t)
			s.pass(25 * time.Hour)
			must(s.refund("r", id, 100))(t)
			if got := s.moved("refund"); got != 200 {
				t.Errorf("refunds: %d", got)
			}
		})

		t.Run("are remembered for as long as the ability says", func(t *testing.T) {
			s := openShop(t, kind)
			s.abilities(`{"target":"psp","keys":"honour","key_window_ms":60000,"lookup":true,"close":true}`)
			id := s.captured("k", 1250)
			must(s.refund("r", id, 100))(t)
			s.pass(59 * time.Second)
			must(s.refund("r", id, 100))(t)
			s.pass(2 * time.Second)
			must(s.refund("r", id, 100))(t)
			if got := s.moved("refund"); got != 200 {
				t.Errorf("refunds: %d", got)
			}
		})

		t.Run("mean nothing where they are ignored", func(t *testing.T) {
			s := openShop(t, kind)
			s.abilities(`{"target":"psp","keys":"ignore","lookup":true,"close":true}`)
			if a, b := must(s.create("k", ""))(t), must(s.create("k", "pm_card_visa"))(t); a.ID == b.ID {
				t.Errorf("one intent for two requests: %s", a.ID)
			}
			id := s.captured("k", 1250)
			must(s.refund("r", id, 100))(t)
			must(s.refund("r", id, 100))(t)
			if got := s.moved("refund"); got != 200 {
				t.Errorf("refunds: %d", got)
			}
		})

		t.Run("need not be sent; then the metadata say whose effect it is", func(t *testing.T) {
			s := openShop(t, kind)
			id := s.form("/payment_intents", create+"&confirm=true&metadata[einmal_effect_key]=of-the-intent").member("id")
			must(s.stripe.V1PaymentIntents.Capture(t.Context(), id, nil))(t)
			s.form("/refunds", "payment_intent="+id+"&amount=1&metadata[einmal_effect_key]=of-the-refund")
			if got := s.pspLedger(); len(got) != 3 || got[0].EffectKey != "of-the-intent" || got[2].EffectKey != "of-the-refund" {
				t.Errorf("ledger %v", got)
			}
		})

		t.Run("must be well formed", func(t *testing.T) {
			s := openShop(t, kind)
			if a := s.form("/payment_intents", create, "Idempotency-Key", "with space"); a.status != http.StatusBadRequest || a.pspError().Type != "invalid_request_error" {
				t.Errorf("got %v", a)
			}
		})
	})
}
