package payments_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v82/webhook"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/problem"
	"github.com/einmal/einmal/pkg/server/servertest"
	"github.com/einmal/einmal/services/payments"
)

// signed is the header of a webhook, signed at a time.
func signed(body, secret string, at time.Time) string {
	return "Stripe-Signature: " + webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{Payload: []byte(body), Secret: secret, Timestamp: at}).Header
}

// tell sends an event as the provider does.
func (r running) tell(body string) servertest.Answer {
	r.t.Helper()
	return r.As("").Send(r.t, "POST", "/v1/hooks/psp", body, signed(body, secret, time.Now()))
}

// events counts the events that a test makes.
var events int

// event is an event of a type about an object.
func event(kind, object, id, status string, minor int64, metadata ...string) string {
	events++
	var meta []string
	for i := 0; i < len(metadata); i += 2 {
		meta = append(meta, fmt.Sprintf("%q:%q", metadata[i], metadata[i+1]))
	}
	return fmt.Sprintf(`{"id":"evt_%d","object":"event","api_version":"2025-08-27.basil","type":%q,"data":{"object":{"id":%q,"object":%q,"status":%q,
		"amount_received":%d,"amount_refunded":%d,"payment_intent":null,"metadata":{%s},"last_payment_error":{"code":"card_declined"}}},"pending_webhooks":1}`,
		events, kind, id, object, status, minor, minor, strings.Join(meta, ","))
}

// about is an event about a payment of ours.
func about(p payment, kind, status string, minor int64) string {
	return event(kind, "payment_intent", p.Reference, status, minor, "account_id", "acme", "payment_id", p.ID)
}

// disposed holds the answer to an event to what became of it.
func (r running) disposed(a servertest.Answer, want string) {
	r.t.Helper()
	var got struct{ Disposition string }
	a.Decode(r.t, &got)
	if a.Status != 200 || got.Disposition != want {
		r.t.Errorf("want it %s: %s", want, a)
	}
}

// review is a review as an operator reads it.
type reviewed struct {
	ID, Kind, State string
	OperationID     string `json:"operation_id"`
	Evidence        []struct{ Source, Says string }
}

func (r running) reviews() []reviewed {
	r.t.Helper()
	return read[struct{ Items []reviewed }](r, "/v1/reviews").Items
}

func TestWebhooksAreSigned(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)
		body := event("customer.created", "customer", "cus_1", "", 0)
		send := func(headers ...string) servertest.Answer {
			return s.As("").Send(t, "POST", "/v1/hooks/psp", body, headers...)
		}
		right := signed(body, secret, time.Now())
		stamp, mac, _ := strings.Cut(strings.TrimPrefix(right, "Stripe-Signature: "), ",")
		for name, headers := range map[string][]string{
			"not at all":                   {},
			"with a bearer token":          {"Authorization: Bearer demo-operator"},
			"with another secret":          {signed(body, "whsec_other", time.Now())},
			"another body":                 {signed(body+" ", secret, time.Now())},
			"too long ago":                 {signed(body, secret, time.Now().Add(-6*time.Minute))},
			"twice":                        {right, right},
			"with another time":            {"Stripe-Signature: t=" + fmt.Sprint(time.Now().Unix()+1) + "," + mac},
			"without a time":               {"Stripe-Signature: " + mac},
			"without a signature":          {"Stripe-Signature: " + stamp},
			"in a scheme that is no more":  {"Stripe-Signature: " + stamp + "," + strings.Replace(mac, "v1=", "v0=", 1)},
			"with half a signature":        {"Stripe-Signature: " + stamp + "," + mac[:20]},
			"with something else entirely": {"Stripe-Signature: hello"},
		} {
			if a := send(headers...); a.Status != 401 {
				t.Errorf("%s: %s", name, a)
			}
		}
		if n := s.count("operations"); n != 0 {
			t.Errorf("%d operations", n)
		}
		s.disposed(send(right), "ignored")
		s.disposed(send("Stripe-Signature: "+stamp+",v1=00ff,"+mac+",v0=1"), "ignored") // while the secret is changed there are two

		t.Run("and without a secret nobody can", func(t *testing.T) {
			s := s.at(t)
			open := s.replica(func(c *payments.Config) { c.WebhookSecret = "" })
			for _, header := range []string{signed(body, "", time.Now()), signed(body, secret, time.Now())} {
				expect(t, "no secret", open.As("").Send(t, "POST", "/v1/hooks/psp", body, header), 401, problem.Unauthenticated)
			}
		})

		t.Run("and are events", func(t *testing.T) {
			s := s.at(t)
			for _, body := range []string{
				``, `{`, `[]`, `{}`, `{"id":"","type":"x","data":{"object":{}}}`, `{"id":"evt_x"}`, `{"id":5,"type":"x","data":{"object":{}}}`,
				`{"id":"evt x","type":"x","data":{"object":{}}}`, `{"id":"evt_\u0000","type":"x","data":{"object":{}}}`,
				`{"id":"evt_y","type":"x","data":{"object":{"id":"pi_\u0000","object":"payment_intent"}}}`,
				`{"id":"` + strings.Repeat("e", 300) + `","type":"x","data":{"object":{}}}`,
				`{"id":"evt_z","type":"x","data":{"object":{"id":"pi_1","object":"payment_intent","amount_received":"1"}}}`,
			} {
				a := s.As("").Send(t, "POST", "/v1/hooks/psp", body, signed(body, secret, time.Now()))
				expect(t, body, a, 400, problem.MalformedBody)
			}
		})
	})
}

func TestWebhooks(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)

		t.Run("are considered once", func(t *testing.T) {
			s := s.at(t)
			p := s.authorized("once")
			body := about(p, "payment_intent.amount_capturable_updated", "requires_capture", 0)
			first := s.tell(body)
			s.disposed(first, "ignored")
			if again := s.tell(body); again.Outcome() != "replayed" || string(again.Body) != string(first.Body) {
				t.Errorf("%s", again)
			}
			changed := strings.Replace(body, p.Reference, "pi_other", 1)
			expect(t, "another event of that id", s.tell(changed), 422, problem.IdempotencyKeyReused)
		})

		t.Run("that come early make the provider be asked", func(t *testing.T) {
			s := s.at(t)
			slow := s.replica(func(c *payments.Config) { c.ReconcileEvery = time.Hour }) // by itself nobody would ask
			s.put("early")
			s.psp.arm("confirm", "after", "reset")
			if err := s.Stop(); err != nil { // the other replica would ask
				t.Fatal(err)
			}
			op := slow.accepted(slow.pay("early", "early"))
			slow.becomes(op.ID, "is unknown", func(op operation) bool { return op.State == "unknown" })
			slow.disposed(slow.tell(about(slow.payment(op.Resource.ID), "payment_intent.amount_capturable_updated", "requires_capture", 0)), "reconciling")
			slow.ends(op.ID, "succeeded")
		})
		s = s.replica()

		t.Run("with a no are no more than a hint", func(t *testing.T) {
			s := s.at(t)
			s.put("hint")
			s.psp.arm("confirm", "after", "reset")
			s.psp.arm("retrieve", "before", "reset", `"times":3`)
			op := s.accepted(s.pay("hint", "hint"))
			s.becomes(op.ID, "is unknown", func(op operation) bool { return op.State == "unknown" })
			s.disposed(s.tell(about(s.payment(op.Resource.ID), "payment_intent.payment_failed", "requires_payment_method", 0)), "reconciling")
			s.ends(op.ID, "succeeded")
			p := s.payment(op.Resource.ID)
			s.disposed(s.tell(about(p, "payment_intent.payment_failed", "requires_payment_method", 0)), "ignored")
			if got := s.payment(p.ID); got.State != "authorized" {
				t.Errorf("%+v", got)
			}
		})

		t.Run("that come late or out of order change nothing", func(t *testing.T) {
			s := s.at(t)
			p := s.captured("late")
			for _, body := range []string{
				about(p, "payment_intent.succeeded", "succeeded", 1250),
				about(p, "payment_intent.amount_capturable_updated", "requires_capture", 0),
				about(p, "payment_intent.created", "requires_confirmation", 0),
				about(p, "payment_intent.payment_failed", "requires_payment_method", 0),
			} {
				s.disposed(s.tell(body), "ignored")
			}
			x := s.done(s.cancel("x", s.authorized("late2").ID, wait), "canceled")
			s.disposed(s.tell(about(x, "payment_intent.canceled", "canceled", 0)), "ignored")
			s.disposed(s.tell(about(x, "payment_intent.amount_capturable_updated", "requires_capture", 0)), "ignored")
			if got := s.payment(p.ID); got != p {
				t.Errorf("%+v, then %+v", p, got)
			}
			if got := s.reviews(); len(got) != 0 {
				t.Errorf("%+v", got)
			}
		})

		t.Run("that contradict what is final go to a person, and change nothing", func(t *testing.T) {
			s := s.at(t)
			s.put("no")
			poor := s.replica(card("pm_card_chargeDeclined"))
			failed := s.payment(s.operation(poor.pay("no", "no", wait).Header.Get("Operation-Id")).Resource.ID)
			if err := poor.Stop(); err != nil {
				t.Fatal(err)
			}
			authorized, captured := s.authorized("yes"), s.captured("taken")
			for i, c := range []struct {
				p    payment
				body string
			}{
				{failed, about(failed, "payment_intent.amount_capturable_updated", "requires_capture", 0)},
				{failed, about(failed, "payment_intent.succeeded", "succeeded", 1250)},
				{authorized, about(authorized, "payment_intent.canceled", "canceled", 0)},
				{authorized, about(authorized, "payment_intent.succeeded", "succeeded", 1250)},
				{authorized, strings.Replace(about(authorized, "payment_intent.succeeded", "succeeded", 1250), authorized.Reference, "pi_second", 1)},
				{captured, about(captured, "payment_intent.canceled", "canceled", 0)},
				{captured, about(captured, "payment_intent.succeeded", "succeeded", 1249)},
				{captured, event("charge.refunded", "charge", "ch_1", "succeeded", 100, "account_id", "acme", "payment_id", captured.ID)},
			} {
				s.disposed(s.tell(c.body), "contradicted")
				if got := s.payment(c.p.ID); got != c.p {
					t.Errorf("%d: %+v, then %+v", i, c.p, got)
				}
			}
			kinds := map[string]int{}
			for _, r := range s.reviews() {
				kinds[r.Kind+" "+r.OperationID] += len(r.Evidence)
			}
			if kinds["contradiction "+failed.OperationID] != 2 || kinds["contradiction "+authorized.OperationID] != 3 || kinds["contradiction "+captured.OperationID] != 3 || len(kinds) != 3 {
				t.Errorf("%v", kinds)
			}
			s.done(s.pay("no2", "no", wait), "authorized")
		})

		t.Run("about refunds are considered likewise", func(t *testing.T) {
			s := s.at(t)
			p := s.captured("back")
			s.psp.arm("refund", "after", "reset")
			s.psp.arm("list_refunds", "before", "reset", `"times":3`)
			op := s.accepted(s.refund("back", p.ID, "5"))
			s.becomes(op.ID, "is unknown", func(op operation) bool { return op.State == "unknown" })
			tell := func(kind, reference, status string) servertest.Answer {
				return s.tell(event(kind, "refund", reference, status, 0, "account_id", "acme", "payment_id", p.ID, "refund_id", op.Resource.ID))
			}
			s.disposed(tell("refund.failed", "re_1", "failed"), "reconciling")
			s.ends(op.ID, "succeeded")
			got := read[refund](s, op.Resource.Href)
			s.disposed(tell("refund.updated", got.Reference, "succeeded"), "ignored")
			s.disposed(tell("refund.created", got.Reference, "pending"), "ignored") // which it was, once
			s.disposed(tell("refund.failed", got.Reference, "failed"), "contradicted")
			s.disposed(tell("refund.updated", "re_other", "succeeded"), "contradicted")
			s.disposed(s.tell(event("charge.refunded", "charge", "ch_2", "succeeded", 500, "account_id", "acme", "payment_id", p.ID)), "ignored")
			if now := s.payment(p.ID); now.RefundedMinor != 500 || now.ReservedMinor != 0 {
				t.Errorf("%+v", now)
			}

			failing := s.replica(card("pm_card_refundFail"))
			failing.put("gives")
			p = failing.done(failing.capture("gives-capture", failing.done(failing.pay("gives", "gives", wait), "authorized").ID, "12.50", wait), "captured")
			op = s.ends(s.accepted(s.refund("gives-back", p.ID, "5")).ID, "failed")
			got = read[refund](s, op.Resource.Href)
			s.disposed(tell("refund.created", got.Reference, "pending"), "ignored")
			s.disposed(tell("refund.failed", got.Reference, "failed"), "ignored")
			s.disposed(tell("refund.updated", got.Reference, "succeeded"), "contradicted")
		})
		s.healthy()
	})
}

// What the provider tells of objects that are not ours is kept for a while, and then a person is asked, once for each object.
func TestUnmatchedWebhooks(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind, func(c *payments.Config) { c.UnmatchedAfter = time.Hour })
		p := s.authorized("o")
		for _, body := range []string{
			event("payment_intent.created", "payment_intent", "pi_theirs", "requires_confirmation", 0),
			event("payment_intent.succeeded", "payment_intent", "pi_theirs", "succeeded", 5),
			event("payment_intent.succeeded", "payment_intent", "pi_nobody", "succeeded", 5, "account_id", "acme", "payment_id", "pay_nobody"),
			event("payment_intent.succeeded", "payment_intent", "pi_globex", "succeeded", 5, "account_id", "globex", "payment_id", p.ID),
			event("payment_intent.succeeded", "payment_intent", "pi_shop", "succeeded", 5, "account_id", "Jörg Doe", "payment_id", "4 / 5"), // another program's
			event("refund.created", "refund", "re_dashboard", "succeeded", 0),
			event("refund.created", "refund", "re_restored", "succeeded", 0, "account_id", "acme", "payment_id", p.ID, "refund_id", "rfd_gone"),
		} {
			s.disposed(s.tell(body), "unmatched")
		}
		if n := s.count("unmatched"); n != 6 || len(s.reviews()) != 0 {
			t.Errorf("%d kept, %d reviews", n, len(s.reviews()))
		}
		if got := s.payment(p.ID); got != p {
			t.Errorf("%+v", got)
		}
		// One of them becomes known, and all become old.
		for _, statement := range []string{
			"UPDATE unmatched SET received_at = '2020-01-01 00:00:00'",
			`UPDATE unmatched SET claims = '{"account":"acme","payment_id":"` + p.ID + `","refund_id":""}' WHERE reference = 'pi_nobody'`,
		} {
			if err := s.db.Read(t.Context()).Exec(statement).Error; err != nil {
				t.Fatal(err)
			}
		}
		quick := s.replica(func(c *payments.Config) { c.UnmatchedAfter = 20 * time.Millisecond })
		deadline := time.After(patience)
		for s.count("unmatched") != 5 || len(quick.reviews()) != 5 {
			select {
			case <-deadline:
				t.Fatalf("%d kept, reviews %+v", s.count("unmatched"), quick.reviews())
			case <-time.After(10 * time.Millisecond):
			}
		}
		for _, r := range quick.reviews() {
			if r.Kind != "unmatched" || r.OperationID != "" || len(r.Evidence) != 1 {
				t.Errorf("%+v", r)
			}
		}
		a := s.As("demo-operator").Send(t, "POST", "/v1/reviews/"+quick.reviews()[0].ID+"/resolution", `{"evidence":"Ours, from the old shop."}`, key("resolve"))
		if a.Status != 200 {
			t.Errorf("%s", a)
		}
		// What one belongs to appears, as after a restore: the question is answered by that.
		belongs := quick.reviews()[1].ID
		err := s.db.Read(t.Context()).Exec(`UPDATE unmatched SET claims = '{"account":"acme","payment_id":"`+p.ID+`","refund_id":""}' WHERE review_id = ?`, belongs).Error
		if err != nil {
			t.Fatal(err)
		}
		for answered := 0; answered == 0; {
			select {
			case <-deadline:
				t.Fatalf("%+v", quick.reviews())
			case <-time.After(10 * time.Millisecond):
			}
			err := s.db.Read(t.Context()).Raw("SELECT count(*) FROM reviews WHERE id = ? AND state = 'resolved' AND resolved_by = 'later evidence' AND evidence LIKE ?",
				belongs, "%"+p.OperationID+"%").Scan(&answered).Error
			if err != nil {
				t.Fatal(err)
			}
		}
		s.healthy()
	})
}
