package simulator_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/stripe/stripe-go/v82"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
)

// Each operation can be struck before or after what it does, and only it.
func TestFaultsOfThePaymentProvider(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := openShop(t, kind)
		effects := map[string]string{"confirm": "authorize", "capture": "capture", "cancel": "void", "refund": "refund"}
		for _, operation := range []string{
			"create", "confirm", "capture", "cancel", "refund", "retrieve", "list", "search", "retrieve_refund", "list_refunds",
		} {
			for _, when := range []string{"before", "after"} {
				t.Run(operation+" "+when, func(t *testing.T) {
					key := operation + "-" + when
					request := s.prepare(key, operation)
					armed, before := len(s.fired()), len(s.pspLedger())
					s.arm(fmt.Sprintf(`{"target":"psp","operation":%q,"when":%q,"action":"reset","times":1}`, operation, when))
					if err := request(); !errors.Is(err, syscall.ECONNRESET) {
						t.Errorf("the caller got %v", err)
					}
					want := 0
					if when == "after" && effects[operation] != "" {
						want = 1
					}
					if got := len(s.pspLedger()) - before; got != want {
						t.Errorf("%d effects, want %d", got, want)
					}
					if err := request(); err != nil {
						t.Errorf("the next request got %v", err)
					}
					if effects[operation] != "" {
						want = 1
					}
					if got := len(s.pspLedger()) - before; got != want {
						t.Errorf("%d effects after the next request, want %d", got, want)
					}
					if got := s.fired()[armed]; got != 1 {
						t.Errorf("the fault fired %d times", got)
					}
				})
			}
		}
	})
}

// prepare makes what an operation needs, and returns a request for it that can be repeated.
func (s *shop) prepare(key, operation string) func() error {
	s.t.Helper()
	ctx := s.t.Context()
	switch operation {
	case "create":
		return func() error { _, err := s.create(key, "pm_card_visa"); return err }
	case "confirm":
		id := must(s.create(key+"-create", "pm_card_visa"))(s.t).ID
		return func() error { _, err := s.confirm(key, id); return err }
	case "capture":
		id := s.authorized(key)
		return func() error { _, err := s.capture(key, id, 1250); return err }
	case "cancel":
		id := s.authorized(key)
		return func() error { _, err := s.cancel(key, id); return err }
	case "refund":
		id := s.captured(key, 1250)
		return func() error { _, err := s.refund(key, id, 1); return err }
	case "retrieve":
		id := must(s.create(key, "pm_card_visa"))(s.t).ID
		return func() error { _, err := s.stripe.V1PaymentIntents.Retrieve(ctx, id, nil); return err }
	case "retrieve_refund":
		id := must(s.refund(key, s.captured(key, 1250), 1))(s.t).ID
		return func() error { _, err := s.stripe.V1Refunds.Retrieve(ctx, id, nil); return err }
	}
	path := map[string]string{"list": "/payment_intents", "search": "/payment_intents/search?query=metadata['a']:'b'", "list_refunds": "/refunds"}[operation]
	return func() error { return s.do(ctx, readToken, "GET", "/psp/v1"+path, "").err }
}

func TestErrorsOfThePaymentProvider(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		t.Run("one after the effect belongs to the key, which never tells the truth again", func(t *testing.T) {
			s := openShop(t, kind)
			id := must(s.create("k", "pm_card_visa"))(t).ID
			s.arm(`{"target":"psp","operation":"confirm","when":"after","action":"status","status":500,"times":1}`)
			_, err := s.confirm("k-authorize", id)
			checkNo(t, err, 500, stripe.ErrorTypeAPI, "")
			_, err = s.confirm("k-authorize", id)
			if e := checkNo(t, err, 500, stripe.ErrorTypeAPI, ""); e.LastResponse == nil || e.LastResponse.Header.Get("Idempotent-Replayed") != "true" {
				t.Errorf("not replayed: %v", err)
			}
			if got := must(s.stripe.V1PaymentIntents.Retrieve(t.Context(), id, nil))(t); got.Status != "requires_capture" {
				t.Errorf("the intent is %s", got.Status)
			}
			if got := s.moved("authorize"); got != 1250 {
				t.Errorf("authorised: %d", got)
			}
		})

		t.Run("one that strikes the replay of an answer changes nothing of it", func(t *testing.T) {
			s := openShop(t, kind)
			first := must(s.create("k", "pm_card_visa"))(t)
			s.arm(`{"target":"psp","operation":"create","when":"after","action":"status","status":500,"times":1}`)
			_, err := s.create("k", "pm_card_visa")
			checkNo(t, err, 500, stripe.ErrorTypeAPI, "")
			if again := must(s.create("k", "pm_card_visa"))(t); again.ID != first.ID {
				t.Errorf("got %s, want %s", again.ID, first.ID)
			}
		})

		t.Run("one before the effect does not belong to the key", func(t *testing.T) {
			s := openShop(t, kind)
			id := must(s.create("k", "pm_card_visa"))(t).ID
			for status, want := range map[int]struct {
				kind stripe.ErrorType
				code stripe.ErrorCode
			}{
				402: {stripe.ErrorTypeCard, stripe.ErrorCodeCardDeclined}, 429: {stripe.ErrorTypeInvalidRequest, stripe.ErrorCodeRateLimit},
				500: {stripe.ErrorTypeAPI, ""}, 503: {stripe.ErrorTypeAPI, ""},
			} {
				s.arm(fmt.Sprintf(`{"target":"psp","operation":"confirm","when":"before","action":"status","status":%d,"times":1}`, status))
				_, err := s.confirm("k-authorize", id)
				checkNo(t, err, status, want.kind, want.code)
			}
			must(s.confirm("k-authorize", id))(t)
		})

		t.Run("one after the effect is not in Stripe's words of a refusal", func(t *testing.T) {
			s := openShop(t, kind)
			id := must(s.create("k", "pm_card_visa"))(t).ID
			for _, status := range []int{400, 401, 402, 403, 404, 425, 429, 500} {
				s.arm(fmt.Sprintf(`{"target":"psp","operation":"confirm","when":"after","action":"status","status":%d,"times":1}`, status))
				_, err := s.confirm("k-authorize", id)
				checkNo(t, err, status, stripe.ErrorTypeAPI, "")
			}
			if made := s.pspLedger(); len(made) != 1 {
				t.Errorf("%+v", made)
			}
		})

		t.Run("a second request while the first is worked on", func(t *testing.T) {
			s := openShop(t, kind)
			id := must(s.create("k", "pm_card_visa"))(t).ID
			s.arm(`{"target":"psp","operation":"confirm","when":"before","action":"delay","delay_ms":3600000,"times":1}`)
			ctx, leave := context.WithCancel(t.Context())
			first := make(chan error, 1)
			go func() {
				p := &stripe.PaymentIntentConfirmParams{}
				p.SetIdempotencyKey("k-authorize")
				_, err := s.stripe.V1PaymentIntents.Confirm(ctx, id, p)
				first <- err
			}()
			eventually(t, "the first arrives", func() bool { return s.fired()[0] == 1 })
			_, err := s.confirm("k-authorize", id)
			checkNo(t, err, http.StatusConflict, stripe.ErrorTypeIdempotency, stripe.ErrorCodeIdempotencyKeyInUse)
			leave()
			if err := <-first; !errors.Is(err, context.Canceled) {
				t.Errorf("the first got %v", err)
			}
			s.checkLedger()
		})

		t.Run("faults strike strangers and malformed requests no more than they do at the desk", func(t *testing.T) {
			s := openShop(t, kind)
			s.arm(`{"target":"psp","when":"after","action":"lose","times":1}`)
			if a := s.do(t.Context(), "wrong", "POST", "/psp/v1/payment_intents", create); a.status != http.StatusUnauthorized {
				t.Errorf("got %v", a)
			}
			if a := s.form("/payment_intents", "amount=x"); a.status != http.StatusBadRequest {
				t.Errorf("got %v", a)
			}
			if a := s.form("/payment_intents/pi_none/cancel", ""); a.status != http.StatusNotFound {
				t.Errorf("got %v", a)
			}
			if a := s.form("/payment_intents", create); !errors.Is(a.err, io.EOF) {
				t.Errorf("got %v", a)
			}
		})
	})
}

func TestWebhookFaultsThatCannotBeArmed(t *testing.T) {
	w := start(t, database.SQLite)
	for body, says := range map[string]string{
		`{"target":"psp","operation":"webhook","when":"after","action":"hang","times":1}`:                "delay, lose, duplicate, reorder",
		`{"target":"psp","operation":"webhook","when":"after","action":"status","status":500,"times":1}`: "delay, lose, duplicate, reorder",
		`{"target":"psp","operation":"capture","when":"after","action":"duplicate","times":1}`:           "for the operation webhook",
		`{"target":"psp","operation":"send","when":"after","action":"hang","times":1}`:                   "create, confirm",
		`{"target":"psp","when":"after","action":"half","times":1}`:                                      "roll out",
		`{"target":"desk","operation":"webhook","when":"after","action":"delay","delay_ms":1,"times":1}`: "send, lookup, close",
	} {
		a := w.do(t.Context(), "", "POST", "/_faults", body)
		if check(t, a, 400, "invalid"); !strings.Contains(a.member("detail"), says) {
			t.Errorf("%s: %q does not say %q", body, a.member("detail"), says)
		}
	}
}
