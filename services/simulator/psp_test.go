package simulator_test

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stripe/stripe-go/v82"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/services/simulator"
)

func TestPayments(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		t.Run("are authorised, captured and refunded", func(t *testing.T) {
			s := openShop(t, kind)
			created := must(s.create("k1", "pm_card_visa"))(t)
			if created.Status != "requires_confirmation" || created.Amount != 1250 || created.Currency != "eur" || created.AmountCapturable != 0 ||
				created.CaptureMethod != "manual" || created.Metadata["order_id"] != "o-1" || !strings.HasPrefix(created.ID, "pi_") {
				t.Errorf("created %+v", created)
			}
			s.checkLedger() // creating moves nothing

			confirmed := must(s.confirm("k2", created.ID))(t)
			if confirmed.Status != "requires_capture" || confirmed.AmountCapturable != 1250 || confirmed.LatestCharge == nil {
				t.Errorf("confirmed %+v", confirmed)
			}
			captured := must(s.capture("k3", created.ID, 1000))(t)
			if captured.Status != "succeeded" || captured.AmountReceived != 1000 || captured.AmountCapturable != 0 {
				t.Errorf("captured %+v", captured)
			}
			refunded := must(s.refund("k4", created.ID, 400))(t)
			if refunded.Status != "succeeded" || refunded.Amount != 400 || refunded.PaymentIntent.ID != created.ID {
				t.Errorf("refunded %+v", refunded)
			}
			s.checkLedger(
				simulator.Effect{Kind: "authorize", EffectKey: "k2", Reference: created.ID, AmountMinor: 1250},
				simulator.Effect{Kind: "capture", EffectKey: "k3", Reference: created.ID, AmountMinor: 1000, Parent: created.ID},
				simulator.Effect{Kind: "refund", EffectKey: "k4", Reference: refunded.ID, AmountMinor: 400, Parent: created.ID},
			)
		})

		t.Run("are released by a cancel", func(t *testing.T) {
			s := openShop(t, kind)
			id := s.authorized("k")
			canceled := must(s.cancel("k-cancel", id))(t)
			if canceled.Status != "canceled" || canceled.AmountCapturable != 0 || canceled.CancellationReason != "requested_by_customer" || canceled.CanceledAt == 0 {
				t.Errorf("got %+v", canceled)
			}
			s.checkLedger(
				simulator.Effect{Kind: "authorize", EffectKey: "k-authorize", Reference: id, AmountMinor: 1250},
				simulator.Effect{Kind: "void", EffectKey: "k-cancel", Reference: id, AmountMinor: 1250, Parent: id},
			)
		})

		t.Run("that nobody authorised are canceled without an effect, and then cannot be confirmed", func(t *testing.T) {
			s := openShop(t, kind)
			id := must(s.create("k", "pm_card_visa"))(t).ID
			must(s.cancel("k-cancel", id))(t)
			_, err := s.confirm("k-late", id)
			checkUnexpected(t, err, "canceled")
			s.checkLedger()
		})

		t.Run("can be captured as they are confirmed", func(t *testing.T) {
			s := openShop(t, kind)
			a := s.form("/payment_intents", "amount=700&currency=jpy&payment_method=pm_card_visa&confirm=true", "Idempotency-Key", "k")
			if a.status != http.StatusOK || a.member("status") != "succeeded" || a.member("amount_received") != "700" {
				t.Errorf("got %v", a)
			}
			if s.moved("authorize") != 700 || s.moved("capture") != 700 {
				t.Errorf("ledger %v", s.pspLedger())
			}
		})
	})
}

func TestPaymentsSurviveARestart(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := openShop(t, kind)
		id := s.captured("k", 1000)
		refunded := must(s.refund("k-refund", id, 400))(t)
		before := must(s.stripe.V1PaymentIntents.Retrieve(t.Context(), id, nil))(t).LastResponse.RawJSON
		ledger := s.pspLedger()

		s.restart()
		s.connect()
		if after := must(s.stripe.V1PaymentIntents.Retrieve(t.Context(), id, nil))(t).LastResponse.RawJSON; string(after) != string(before) {
			t.Errorf("before %s, after %s", before, after)
		}
		if again := must(s.refund("k-refund", id, 400))(t); again.ID != refunded.ID {
			t.Errorf("the refund again is %s, was %s", again.ID, refunded.ID)
		}
		_, err := s.refund("k-more", id, 601)
		checkNo(t, err, http.StatusBadRequest, stripe.ErrorTypeInvalidRequest, stripe.ErrorCodeAmountTooLarge)
		if diff := cmp.Diff(ledger, s.pspLedger()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestCards(t *testing.T) {
	s := openShop(t, database.SQLite)
	for card, want := range map[string]struct{ code, decline string }{
		"pm_card_chargeDeclined":                  {"card_declined", "generic_decline"},
		"pm_card_chargeDeclinedInsufficientFunds": {"card_declined", "insufficient_funds"},
		"pm_card_chargeDeclinedExpiredCard":       {"expired_card", ""},
		"pm_card_chargeDeclinedProcessingError":   {"processing_error", ""},
	} {
		t.Run(card+" is declined, and says so again", func(t *testing.T) {
			id := must(s.create(card, card))(t).ID
			for range 2 {
				_, err := s.confirm(card+"-authorize", id)
				e := checkNo(t, err, http.StatusPaymentRequired, stripe.ErrorTypeCard, stripe.ErrorCode(want.code))
				if string(e.DeclineCode) != want.decline || e.PaymentIntent == nil || e.PaymentIntent.Status != "requires_payment_method" {
					t.Errorf("got %+v", e)
				}
			}
			found := must(s.stripe.V1PaymentIntents.Retrieve(t.Context(), id, nil))(t)
			if found.Status != "requires_payment_method" || found.LastPaymentError == nil || string(found.LastPaymentError.Code) != want.code {
				t.Errorf("retrieved %+v", found)
			}
			_, err := s.confirm(card+"-again", id)
			checkUnexpected(t, err, "requires_payment_method")
		})
	}
	t.Run("one whose owner must say yes waits for that", func(t *testing.T) {
		id := must(s.create("asks", "pm_card_authenticationRequired"))(t).ID
		if got := must(s.confirm("asks-authorize", id))(t); got.Status != "requires_action" || got.NextAction == nil {
			t.Errorf("got %+v", got)
		}
		_, err := s.capture("asks-capture", id, 1)
		checkUnexpected(t, err, "requires_action")
		must(s.cancel("asks-cancel", id))(t)
	})
	t.Run("one that there is not is not found", func(t *testing.T) {
		_, err := s.create("moon", "pm_card_moon")
		checkNo(t, err, http.StatusNotFound, stripe.ErrorTypeInvalidRequest, stripe.ErrorCodeResourceMissing)
	})
	if got := s.pspLedger(); len(got) != 0 {
		t.Errorf("something moved: %v", got)
	}
	t.Run("one that takes nothing back fails the refund", func(t *testing.T) {
		id := must(s.create("keeps", "pm_card_refundFail"))(t).ID
		must(s.confirm("keeps-authorize", id))(t)
		must(s.capture("keeps-capture", id, 1250))(t)
		if got := must(s.refund("keeps-refund", id, 100))(t); got.Status != "failed" || got.FailureReason == "" {
			t.Errorf("got %+v", got)
		}
		if s.moved("refund") != 0 {
			t.Errorf("ledger %v", s.pspLedger())
		}
	})
}

// What an intent cannot do in its state it refuses, whoever asks with whatever key: that alone protects authorise, capture and
// cancel where keys mean nothing.
func TestStatesRefuse(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		for _, keys := range []string{"honour", "ignore"} {
			t.Run("with keys that it does "+keys, func(t *testing.T) {
				s := openShop(t, kind)
				s.abilities(`{"target":"psp","keys":"` + keys + `","lookup":true,"close":true}`)
				try := map[string]func(id string) error{
					"confirm": func(id string) error { _, err := s.confirm("2-"+id+"-confirm", id); return err },
					"capture": func(id string) error { _, err := s.capture("2-"+id+"-capture", id, 1); return err },
					"cancel":  func(id string) error { _, err := s.cancel("2-"+id+"-cancel", id); return err },
					"refund":  func(id string) error { _, err := s.refund("2-"+id+"-refund", id, 1); return err },
				}
				canceled := s.authorized("canceled")
				must(s.cancel("canceled-cancel", canceled))(t)
				created := must(s.create("created", "pm_card_visa"))(t).ID
				authorized, captured := s.authorized("authorized"), s.captured("captured", 1250)
				before := len(s.pspLedger())
				for _, c := range []struct {
					id      string
					state   stripe.PaymentIntentStatus
					refuses []string
				}{
					{created, "requires_confirmation", []string{"capture", "refund"}},
					{authorized, "requires_capture", []string{"confirm", "refund"}},
					{captured, "succeeded", []string{"confirm", "capture", "cancel"}},
					{canceled, "canceled", []string{"confirm", "capture", "cancel", "refund"}},
				} {
					for _, what := range c.refuses {
						checkUnexpected(t, try[what](c.id), c.state)
					}
				}
				if got := len(s.pspLedger()); got != before {
					t.Errorf("%d effects came of it", got-before)
				}
			})
		}
	})
}

func TestNeverMoreThanThereIs(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := openShop(t, kind)
		t.Run("is captured", func(t *testing.T) {
			_, err := s.capture("k-capture", s.authorized("k"), 1251)
			checkNo(t, err, http.StatusBadRequest, stripe.ErrorTypeInvalidRequest, stripe.ErrorCodeAmountTooLarge)
			if s.moved("capture") != 0 {
				t.Error("it was")
			}
		})
		t.Run("is refunded", func(t *testing.T) {
			id := s.captured("r", 1000)
			_, err := s.refund("r-1", id, 1001)
			checkNo(t, err, http.StatusBadRequest, stripe.ErrorTypeInvalidRequest, stripe.ErrorCodeAmountTooLarge)
			must(s.refund("r-2", id, 600))(t)
			_, err = s.refund("r-3", id, 401)
			checkNo(t, err, http.StatusBadRequest, stripe.ErrorTypeInvalidRequest, stripe.ErrorCodeAmountTooLarge)
			rest := must(s.stripe.V1Refunds.Create(t.Context(), &stripe.RefundCreateParams{PaymentIntent: stripe.String(id)}))(t)
			if rest.Amount != 400 {
				t.Errorf("what is left: %d", rest.Amount)
			}
			_, err = s.refund("r-4", id, 1)
			checkNo(t, err, http.StatusBadRequest, stripe.ErrorTypeInvalidRequest, stripe.ErrorCodeChargeAlreadyRefunded)
			if got := s.moved("refund"); got != 1000 {
				t.Errorf("refunds: %d", got)
			}
		})
		t.Run("is refunded, by however many at once", func(t *testing.T) {
			id, before := s.captured("many", 1000), s.moved("refund")
			done := make(chan error, 16)
			for i := range cap(done) {
				go func() {
					_, err := s.refund("many-"+string(rune('a'+i)), id, 300)
					done <- err
				}()
			}
			for range cap(done) {
				<-done
			}
			if got := s.moved("refund") - before; got != 900 {
				t.Errorf("refunds: %d", got)
			}
		})
	})
}

// What is wrong with a request is said in Stripe's form, names the parameter, and is not remembered under the key.
func TestParameters(t *testing.T) {
	s := openShop(t, database.SQLite)
	id := s.captured("captured", 1250)
	for _, c := range []struct{ path, body, param, says string }{
		{"/payment_intents", "", "amount", "Missing required param"},
		{"/payment_intents", "amount=1&currency=", "currency", "Missing required param"},
		{"/payment_intents", "amount=1&currency=moon", "currency", "Invalid currency"},
		{"/payment_intents", "amount=12.50&currency=eur", "amount", "Invalid integer"},
		{"/payment_intents", "amount=0&currency=eur", "amount", "greater than or equal to 1"},
		{"/payment_intents", "amount=-5&currency=eur", "amount", "greater than or equal to 1"},
		{"/payment_intents", "amount=9007199254740993&currency=eur", "amount", "too large"},
		{"/payment_intents", "amount=1e9&currency=eur", "amount", "Invalid integer"},
		{"/payment_intents", "amount=1&amount=2&currency=eur", "amount", "more than once"},
		{"/payment_intents", "amount=1&currency=eur&colour=red", "colour", "unknown parameter"},
		{"/payment_intents", "amount=1&currency=eur&capture_method=later", "capture_method", "must be one of"},
		{"/payment_intents", "amount=1&currency=eur&metadata[a]=" + strings.Repeat("x", 501), "metadata[a]", "at most"},
		{"/payment_intents", "amount=%zz", "", "not a form"},
		{"/payment_intents/" + id + "/capture", "amount_to_capture=x", "amount_to_capture", "Invalid integer"},
		{"/payment_intents/" + id + "/cancel", "cancellation_reason=bored", "cancellation_reason", "must be one of"},
		{"/refunds", "amount=1", "", "payment_intent or charge"},
		{"/refunds", "payment_intent=" + id + "&amount=0", "amount", "greater than or equal to 1"},
		{"/refunds", "payment_intent=" + id + "&reason=bored", "reason", "must be one of"},
	} {
		a := s.form(c.path, c.body, "Idempotency-Key", "same")
		e := a.pspError()
		if a.status != http.StatusBadRequest || e.Type != "invalid_request_error" || e.Param != c.param || !strings.Contains(e.Msg, c.says) {
			t.Errorf("POST %s %.60s: %v; want %q about %q", c.path, c.body, a, c.says, c.param)
		}
	}
	for _, path := range []string{"/payment_intents/pi_none/confirm", "/payment_intents/pi_none/capture", "/payment_intents/pi_none/cancel"} {
		if a := s.form(path, "", "Idempotency-Key", "same"); a.status != http.StatusNotFound || a.pspError().Code != "resource_missing" {
			t.Errorf("POST %s: %v", path, a)
		}
	}
	if a := s.form("/refunds", "payment_intent=pi_none", "Idempotency-Key", "same"); a.status != http.StatusNotFound {
		t.Errorf("refund of nothing: %v", a)
	}
	if a := s.form("/payment_intents", "amount=1&currency=eur", "Idempotency-Key", "same"); a.status != http.StatusOK || a.replayed() {
		t.Errorf("the key after all that: %v", a)
	}
	if got := len(s.pspLedger()); got != 2 {
		t.Errorf("%d effects", got)
	}
}

func TestWhoMayAskThePaymentProvider(t *testing.T) {
	s := openShop(t, database.SQLite)
	created := must(s.create("k", "pm_card_visa"))(t)
	basic := func(method, path, token string) answer {
		request, _ := http.NewRequest(method, "/", nil)
		request.SetBasicAuth(token, "")
		return s.do(t.Context(), "", method, path, "", "Authorization", request.Header.Get("Authorization"))
	}
	if a := basic("GET", "/psp/v1/payment_intents/"+created.ID, readToken); a.status != http.StatusOK {
		t.Errorf("a look-up with the read token as the user name: %v", a)
	}
	if a := basic("POST", "/psp/v1/payment_intents/"+created.ID+"/confirm", readToken); a.status != http.StatusUnauthorized || a.pspError().Type != "invalid_request_error" {
		t.Errorf("a send with the read token: %v", a)
	}
	check(t, basic("GET", "/desk/v1/tickets?effect_key=k", readToken), http.StatusUnauthorized, "unauthorized")
	if a := s.do(t.Context(), writeToken, "GET", "/psp/v1/nothing", ""); a.status != http.StatusNotFound || a.pspError().Type != "invalid_request_error" {
		t.Errorf("a route that there is not: %v", a)
	}
	s.checkLedger()
}

// Every member of what is answered is one of Stripe's, or a caller could come to rely on what only the simulator says.
func TestAnswersHaveOnlyMembersOfStripe(t *testing.T) {
	s := openShop(t, database.SQLite)
	id := s.captured("k", 1250)
	refunded := must(s.refund("k-refund", id, 1))(t)
	_, err := s.confirm("k-again", id)
	unexpected := checkNo(t, err, 400, stripe.ErrorTypeInvalidRequest, stripe.ErrorCodePaymentIntentUnexpectedState)
	for name, c := range map[string]struct {
		raw  []byte
		like any
	}{
		"intent":          {must(s.stripe.V1PaymentIntents.Retrieve(t.Context(), id, nil))(t).LastResponse.RawJSON, stripe.PaymentIntent{}},
		"refund":          {refunded.LastResponse.RawJSON, stripe.Refund{}},
		"error":           {errorIn(t, unexpected.LastResponse.RawJSON), stripe.Error{}},
		"intents":         {[]byte(s.do(t.Context(), readToken, "GET", "/psp/v1/payment_intents", "").body), stripe.PaymentIntentList{}},
		"refunds":         {[]byte(s.do(t.Context(), readToken, "GET", "/psp/v1/refunds", "").body), stripe.RefundList{}},
		"intents, search": {[]byte(s.do(t.Context(), readToken, "GET", "/psp/v1/payment_intents/search?query=metadata['a']:'b'", "").body), stripe.PaymentIntentSearchResult{}},
	} {
		checkMembers(t, name, c.raw, c.like)
	}
}

func errorIn(t *testing.T, raw []byte) []byte {
	t.Helper()
	var body struct {
		Error json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(raw, &body); err != nil {
		t.Fatal(err)
	}
	return body.Error
}

func checkMembers(t *testing.T, name string, raw []byte, like any) {
	t.Helper()
	known := map[string]bool{"object": true}
	collectMembers(reflect.TypeOf(like), known)
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil || len(members) == 0 {
		t.Fatalf("%s: %v in %s", name, err, raw)
	}
	for member := range members {
		if !known[member] {
			t.Errorf("%s: Stripe has no member %s", name, member)
		}
	}
}

func collectMembers(of reflect.Type, known map[string]bool) {
	for i := range of.NumField() {
		field := of.Field(i)
		member, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous {
			collectMembers(field.Type, known)
		}
		known[member] = true
	}
}
