package simulator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stripe/stripe-go/v82"
	"github.com/stripe/stripe-go/v82/webhook"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/services/simulator"
)

// hookSecret is what the events of these tests are signed with.
const hookSecret = "whsec_test"

// receiver is a webhook of ours: what it is told it checks as Stripe's own client does.
type receiver struct {
	mu     sync.Mutex
	events []stripe.Event // the accepted ones
	wrong  []error
	answer func(attempt int) int // the status for the n-th request, from 1
	seen   int
}

// hook starts a receiver and makes the provider tell it what happens.
func (s *shop) hook(answer func(attempt int) int) *receiver {
	s.t.Helper()
	r := &receiver{answer: answer}
	server := httptest.NewServer(r)
	s.t.Cleanup(server.Close)
	s.tell(server.URL)
	return r
}

// nudge is any request to the provider, which makes it look whether an event is due: that time has passed it does not know.
func (w *world) nudge() { w.do(w.t.Context(), readToken, "GET", "/psp/v1/refunds", "") }

// tell makes the provider send its events to url.
func (w *world) tell(url string) {
	w.t.Helper()
	a := w.do(w.t.Context(), "", "POST", "/_webhooks", fmt.Sprintf(`{"target":"psp","url":%q,"secret":%q}`, url, hookSecret))
	if a.status != http.StatusNoContent {
		w.t.Fatalf("set webhook: %v", a)
	}
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen++
	status := http.StatusOK
	if r.answer != nil {
		status = r.answer(r.seen)
	}
	event, invalid := webhook.ConstructEvent(body, request.Header.Get("Stripe-Signature"), hookSecret)
	switch {
	case err != nil || invalid != nil:
		r.wrong = append(r.wrong, err, invalid)
	case status/100 == 2:
		r.events = append(r.events, event)
	}
	w.WriteHeader(status)
}

func (r *receiver) attempts() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen
}

// types are those of the accepted events, in their order.
func (r *receiver) types() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	types := []string{}
	for _, e := range r.events {
		types = append(types, string(e.Type))
	}
	return types
}

// counts is how often each event was accepted, by its type.
func (r *receiver) counts() map[string]int {
	counts := map[string]int{}
	for _, kind := range r.types() {
		counts[kind]++
	}
	return counts
}

// accepts waits until the webhook has accepted these events, in this order.
func (r *receiver) accepts(t *testing.T, want ...string) {
	t.Helper()
	eventually(t, strings.Join(want, ", "), func() bool { return len(r.types()) >= len(want) })
	if diff := cmp.Diff(want, r.types()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, err := range r.wrong {
		if err != nil {
			t.Error(err)
		}
	}
}

const (
	wasAuthorized = "payment_intent.amount_capturable_updated"
	wasCaptured   = "payment_intent.succeeded"
	wasCanceled   = "payment_intent.canceled"
	hasFailed     = "payment_intent.payment_failed"
)

func TestWebhooks(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		t.Run("are told what happens, in order and signed", func(t *testing.T) {
			s := openShop(t, kind)
			r := s.hook(nil)
			id := s.captured("k", 1250)
			must(s.refund("k-refund", id, 100))(t)
			must(s.cancel("c-cancel", s.authorized("c")))(t)
			_, err := s.confirm("d-authorize", must(s.create("d", "pm_card_chargeDeclined"))(t).ID)
			if err == nil {
				t.Error("not declined")
			}
			r.accepts(t, wasAuthorized, wasCaptured, "charge.refunded", "refund.created", "refund.updated", wasAuthorized, wasCanceled, hasFailed)

			var shown stripe.PaymentIntent
			if err := json.Unmarshal(r.events[1].Data.Raw, &shown); err != nil {
				t.Fatal(err)
			}
			if shown.ID != id || shown.Status != "succeeded" || shown.AmountReceived != 1250 || shown.Metadata["order_id"] != "o-1" {
				t.Errorf("the event shows %+v", shown)
			}
			if r.events[1].Request.IdempotencyKey != "k-capture" || r.events[0].ID == r.events[1].ID {
				t.Errorf("events %+v and %+v", r.events[0], r.events[1])
			}
			var charge stripe.Charge
			if err := json.Unmarshal(r.events[2].Data.Raw, &charge); err != nil || charge.AmountRefunded != 100 || charge.PaymentIntent.ID != id {
				t.Errorf("the charge %+v, %v", charge, err)
			}
			checkMembers(t, "charge", r.events[2].Data.Raw, stripe.Charge{})
			if got := read[simulator.Event](s.world, "/_webhooks?target=psp"); len(got) != 8 || got[0].Attempts != 1 || got[0].Copies != 0 || got[0].Reference != id {
				t.Errorf("listed: %+v", got)
			}
		})

		t.Run("are told again until they accept, and then not", func(t *testing.T) {
			s := openShop(t, kind)
			r := s.hook(func(attempt int) int {
				return []int{500, 302, 404, 200, 200}[attempt-1]
			})
			id := s.authorized("k")
			r.accepts(t, wasAuthorized)
			must(s.capture("k-capture", id, 1))(t)
			r.accepts(t, wasAuthorized, wasCaptured)
			if got := r.attempts(); got != 5 {
				t.Errorf("%d attempts", got)
			}
		})

		t.Run("are told after a restart what they had not accepted", func(t *testing.T) {
			s := openShop(t, kind)
			r := s.hook(func(int) int { return 503 })
			s.authorized("k")
			eventually(t, "an attempt", func() bool { return r.attempts() > 0 })
			s.stop()
			r.mu.Lock()
			r.answer = nil
			r.mu.Unlock()
			s.begin()
			r.accepts(t, wasAuthorized)
		})

		t.Run("are told nothing that happened before there was one", func(t *testing.T) {
			s := openShop(t, kind)
			id := s.authorized("k")
			r := s.hook(nil)
			must(s.cancel("k-cancel", id))(t)
			r.accepts(t, wasCanceled)
		})

		t.Run("are told before the answer comes, if that takes its time", func(t *testing.T) {
			s := openShop(t, kind)
			r := s.hook(nil)
			id := must(s.create("k", "pm_card_visa"))(t).ID
			s.arm(`{"target":"psp","operation":"confirm","when":"after","action":"hang","times":1}`)
			ctx, leave := context.WithCancel(t.Context())
			left := make(chan answer, 1)
			go func() {
				left <- s.do(ctx, writeToken, "POST", "/psp/v1/payment_intents/"+id+"/confirm", "")
			}()
			r.accepts(t, wasAuthorized)
			leave()
			if a := <-left; !errors.Is(a.err, context.Canceled) {
				t.Errorf("the answer that hangs: %v", a)
			}
		})

		t.Run("are told nothing by a replay", func(t *testing.T) {
			s := openShop(t, kind)
			r := s.hook(nil)
			id := s.authorized("k")
			must(s.confirm("k-authorize", id))(t)
			must(s.cancel("k-cancel", id))(t)
			r.accepts(t, wasAuthorized, wasCanceled)
		})
	})
}

func TestFaultsOfWebhooks(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		arm := func(s *shop, action string) {
			s.arm(fmt.Sprintf(`{"target":"psp","operation":"webhook","when":"before","action":%s,"times":1}`, action))
		}
		t.Run("one that is duplicated is told twice", func(t *testing.T) {
			s := openShop(t, kind)
			r := s.hook(nil)
			s.arm(`{"target":"psp","when":"after","action":"duplicate","times":1}`) // the action says what it strikes
			must(s.cancel("k-cancel", s.authorized("k")))(t)
			eventually(t, "it comes twice, and the next", func() bool { return len(r.types()) == 3 })
			if diff := cmp.Diff(map[string]int{wasAuthorized: 2, wasCanceled: 1}, r.counts()); diff != "" {
				t.Error(diff)
			}
			if got := s.fired()[0]; got != 1 {
				t.Errorf("fired %d times", got)
			}
		})

		t.Run("one that is reordered comes after the next", func(t *testing.T) {
			s := openShop(t, kind)
			r := s.hook(nil)
			arm(s, `"reorder"`)
			s.captured("k", 1250)
			r.accepts(t, wasCaptured, wasAuthorized)
		})

		t.Run("one that is reordered, and followed by none, comes late", func(t *testing.T) {
			s := openShop(t, kind)
			r := s.hook(nil)
			arm(s, `"reorder"`)
			s.authorized("k")
			s.pass(time.Minute)
			s.nudge()
			r.accepts(t, wasAuthorized)
		})

		t.Run("one that is delayed comes late", func(t *testing.T) {
			s := openShop(t, kind)
			r := s.hook(nil)
			arm(s, `"delay","delay_ms":60000`)
			s.captured("k", 1250)
			r.accepts(t, wasCaptured)
			s.pass(time.Minute)
			s.nudge()
			r.accepts(t, wasCaptured, wasAuthorized)
		})

		t.Run("one that is lost never comes", func(t *testing.T) {
			s := openShop(t, kind)
			r := s.hook(nil)
			arm(s, `"lose"`)
			s.captured("k", 1250)
			r.accepts(t, wasCaptured)
			if got := read[simulator.Event](s.world, "/_webhooks"); len(got) != 2 || !got[0].Faulted || got[0].Attempts != 0 || got[0].Copies != 0 {
				t.Errorf("listed: %+v", got)
			}
		})

		t.Run("those of requests do not strike them, nor theirs requests", func(t *testing.T) {
			s := openShop(t, kind)
			r := s.hook(nil)
			arm(s, `"lose"`)
			must(s.create("k", "pm_card_visa"))(t)
			s.arm(`{"target":"psp","when":"after","action":"lose","times":1}`)
			if a := s.form("/payment_intents", create+"&confirm=true"); a.err == nil {
				t.Errorf("got %v", a)
			}
			if diff := cmp.Diff([]int64{1, 1}, s.fired()); diff != "" {
				t.Error(diff)
			}
			must(s.cancel("c-cancel", s.authorized("c")))(t)
			r.accepts(t, wasAuthorized, wasCanceled) // after the one event that was lost, its two
		})
	})
}

func TestWebhooksThatCannotBeSet(t *testing.T) {
	w := start(t, database.SQLite)
	for body, says := range map[string]string{
		`{}`: "target, url, secret are missing",
		`{"target":"moon","url":"http://127.0.0.1:1","secret":"s"}`: `no target "moon"`,
		`{"target":"desk","url":"http://127.0.0.1:1","secret":"s"}`: "sends no events",
		`{"target":"psp","url":"ftp://127.0.0.1","secret":"s"}`:     "http or https",
		`{"target":"psp","url":"http:","secret":"s"}`:               "with a host",
		`{"target":"psp","url":"http://127.0.0.1:1","secret":""}`:   "secret must not be empty",
	} {
		a := w.do(t.Context(), "", "POST", "/_webhooks", body)
		if check(t, a, 400, "invalid"); !strings.Contains(a.member("detail"), says) {
			t.Errorf("%s: %q does not say %q", body, a.member("detail"), says)
		}
	}
}
