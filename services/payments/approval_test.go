package payments_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/problem"
	"github.com/einmal/einmal/pkg/server/servertest"
	"github.com/einmal/einmal/services/payments"
)

// asks sends a payment that a person is asked about.
func (r running) asks(id string) operation {
	r.t.Helper()
	r.putOf(id, "10000.00", "EUR")
	return r.accepted(r.payOf("pay-"+id, id, "10000.00", "EUR"))
}

// question reads what a person is asked about an operation.
func (r running) question(op operation) approval {
	r.t.Helper()
	return read[approval](r, "/v1/approvals/"+op.ApprovalID)
}

func TestWhichPaymentsAsk(t *testing.T) {
	s := start(t, database.SQLite)
	for _, c := range []struct {
		amount, currency string
		asks             bool
	}{
		{"9999.99", "EUR", false},
		{"10000", "EUR", true},
		{"9999", "JPY", false},
		{"10000", "JPY", true},
		{"9999.999", "KWD", false},
		{"10000.000", "KWD", true},
		{"92000", "KWD", true},
	} {
		id := "o-" + strings.ReplaceAll(c.amount, ".", "-") + c.currency
		s.putOf(id, c.amount, c.currency)
		op := s.accepted(s.payOf(id, id, c.amount, c.currency))
		if asks := op.ApprovalID != ""; asks != c.asks {
			t.Errorf("%s %s: %+v", c.amount, c.currency, op)
		}
		if op.ApprovalID != "" {
			if facts := s.question(op).Facts; facts["currency"] != c.currency || !strings.HasPrefix(facts["amount"].(string), c.amount) {
				t.Errorf("%s %s: %v", c.amount, c.currency, facts)
			}
			s.decide("no-"+id, op, "reject")
		}
	}
	everything := s.replica(func(c *payments.Config) { c.ApprovalThreshold = 0 })
	everything.put("small")
	if op := everything.accepted(everything.pay("small", "small")); op.ApprovalID == "" {
		t.Errorf("%+v", op)
	} else {
		s.decide("no-small", op, "reject")
	}
	s.healthy()
}

func TestAPaymentThatAsks(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)

		t.Run("says whom to ask, and a person is shown all of it", func(t *testing.T) {
			s := s.at(t)
			r := s.agent().Send(t, "PUT", "/v1/orders/o1", `{"amount":"12000","currency":"EUR","payee":"Bakery Brown","invoice_reference":"R-7"}`, key("o1"))
			if r.Status != 201 {
				t.Fatal(r)
			}
			a := s.payOf("p1", "o1", "12000", "EUR")
			op := s.accepted(a)
			if op.State != "awaiting_approval" || op.Effect != "none" || op.NextAction != "ask_human" || op.ApprovalID == "" || a.Header.Get("Retry-After") != "60" {
				t.Errorf("%s", a)
			}
			got := s.question(op)
			facts := map[string]any{"payee": "Bakery Brown", "amount": "12000.00", "currency": "EUR", "invoice": "R-7", "order": "o1", "payment": op.Resource.ID}
			if diff := cmp.Diff(facts, got.Facts); diff != "" || got.State != "pending" || got.OperationID != op.ID || got.RequestedBy != "demo-agent" ||
				!strings.Contains(got.Consequence, "12000.00 EUR") || !strings.Contains(got.Consequence, "Bakery Brown") {
				t.Errorf("%+v (-want +got)\n%s", got, diff)
			}
			if p := s.payment(op.Resource.ID); p.State != "pending" {
				t.Errorf("%+v", p)
			}
			expect(t, "its order", s.payOf("p1b", "o1", "12000", "EUR"), 409, problem.OrderBusy)
			page := read[struct{ Items []approval }](s, "/v1/approvals?state=pending")
			if len(page.Items) != 1 || page.Items[0].ID != got.ID {
				t.Errorf("%+v", page)
			}
			expect(t, "another account's", s.globex().Send(t, "GET", "/v1/approvals/"+got.ID, ""), 404, problem.NotFound)
			if page := of[struct{ Items []approval }](t, s.globex().Send(t, "GET", "/v1/approvals", "")); len(page.Items) != 0 {
				t.Errorf("%+v", page)
			}
			expect(t, "no state", s.agent().Send(t, "GET", "/v1/approvals?state=open", ""), 422, problem.ValidationFailed)

			for who, client := range map[string]servertest.Client{"agent": s.agent(), "operator": s.As("demo-operator"), "globex": s.globex()} {
				expect(t, who, s.decideAs(client, "by-"+who, got, "approve"), 403, problem.Forbidden)
			}
			for body, pointer := range map[string]string{
				`{"decision":"yes","fingerprint":"v1:0"}`:                  "/decision",
				`{"decision":"approve"}`:                                   "/fingerprint",
				`{"decision":"approve","fingerprint":"f","reason":""}`:     "/reason",
				`{"decision":"approve","fingerprint":"f","approved":true}`: "/approved",
			} {
				p := expect(t, body, s.approver().Send(t, "POST", "/v1/approvals/"+got.ID+"/decision", body, key("wrong")), 422, problem.ValidationFailed)
				if len(p.Errors) != 1 || p.Errors[0].Pointer != pointer {
					t.Errorf("%s: %+v", body, p.Errors)
				}
			}
			other := got
			other.Fingerprint = "v1:" + strings.Repeat("0", 64)
			told := expect(t, "another fingerprint", s.decideAs(s.approver(), "other", other, "approve"), 409, problem.ApprovalStale)
			if told.OperationID != op.ID || told.OperationState != "awaiting_approval" || told.Effect != "none" {
				t.Errorf("it tells of another operation than the one that is asked about: %+v", told)
			}
			if again := s.decideAs(s.approver(), "other", other, "approve"); again.Outcome() != "replayed" {
				t.Errorf("%s", again)
			}

			yes := s.decideAs(s.approver(), "yes", got, "approve")
			if a := of[approval](t, yes); yes.Status != 200 || a.State != "approved" || a.ApprovedBy != "demo-approver" || yes.Header.Get("Location") != "/v1/approvals/"+got.ID {
				t.Errorf("%s", yes)
			}
			if again := s.decideAs(s.approver(), "yes", got, "approve"); again.Outcome() != "replayed" || string(again.Body) != string(yes.Body) {
				t.Errorf("%s", again)
			}
			expect(t, "a second decision", s.decideAs(s.approver(), "no", got, "reject"), 409, problem.ApprovalDecided)
			if end := s.ends(op.ID, "succeeded"); end.ApprovalID != got.ID {
				t.Errorf("%+v", end)
			}
			s.psp.has("authorize 1200000 EUR")
			if diff := cmp.Diff([]string{"approval_requested ", "approved demo-approver"}, s.told(op)); diff != "" {
				t.Errorf("events (-want +got)\n%s", diff)
			}
		})

		t.Run("ends with a no, and its order can be paid again", func(t *testing.T) {
			s := s.at(t)
			op := s.asks("o2")
			body := fmt.Sprintf(`{"decision":"reject","fingerprint":%q,"reason":"Ask the supplier first."}`, s.question(op).Fingerprint)
			if no := s.approver().Send(t, "POST", "/v1/approvals/"+op.ApprovalID+"/decision", body, key("no-o2")); no.Status != 200 || of[approval](t, no).State != "rejected" {
				t.Errorf("%s", no)
			}
			p := expect(t, "the payment again", s.payOf("pay-o2", "o2", "10000.00", "EUR"), 409, problem.ApprovalRejected)
			if !strings.Contains(p.Detail, "Ask the supplier first.") || p.OperationState != "canceled" || p.Effect != "none" {
				t.Errorf("%+v", p)
			}
			if o := read[order](s, "/v1/orders/o2"); o.State != "open" {
				t.Errorf("%+v", o)
			}
			if p := s.payment(op.Resource.ID); p.State != "canceled" {
				t.Errorf("%+v", p)
			}
		})

		t.Run("can be withdrawn while it waits", func(t *testing.T) {
			s := s.at(t)
			op := s.asks("o3")
			a := s.agent().Send(t, "POST", "/v1/operations/"+op.ID+"/cancel", "{}", key("cancel-o3"))
			if a.Status != 200 || of[operation](t, a).State != "canceled" {
				t.Errorf("%s", a)
			}
			if q := s.question(op); q.State != "stale" {
				t.Errorf("%+v", q)
			}
			expect(t, "a yes after that", s.decide("late-o3", op, "approve"), 409, problem.ApprovalStale)
			expect(t, "the payment again", s.payOf("pay-o3", "o3", "10000.00", "EUR"), 409, problem.OperationCanceled)
		})

		t.Run("shows a person what is at the provider of it before they have agreed", func(t *testing.T) {
			s := s.at(t)
			op := s.asks("o6")
			told := event("payment_intent.amount_capturable_updated", "payment_intent", "pi_early", "requires_capture", 0, "account_id", "acme", "payment_id", op.Resource.ID)
			s.disposed(s.tell(told), "contradicted")
			all := s.reviews()
			if len(all) != 1 || all[0].Kind != "contradiction" || all[0].OperationID != op.ID || !strings.Contains(all[0].Evidence[0].Says, "pi_early") {
				t.Errorf("%+v", all)
			}
			if op := read[operation](s, "/v1/operations/"+op.ID); op.State != "awaiting_approval" {
				t.Errorf("%+v", op)
			}
			s.decide("no-o6", op, "reject")
		})
		t.Run("answers who waits for it as soon as a person has said yes", func(t *testing.T) {
			s := s.at(t)
			op := s.asks("o4")
			waited := make(chan servertest.Answer, 1)
			go func() { waited <- s.agent().Send(t, "GET", "/v1/operations/"+op.ID, "", wait) }()
			s.decide("yes-o4", op, "approve")
			if got := of[operation](t, <-waited); got.State != "succeeded" {
				t.Errorf("%+v", got)
			}
		})

		t.Run("ends by itself when nobody decides", func(t *testing.T) {
			s := s.at(t).replica(func(c *payments.Config) { c.ApprovalTTL = 300 * time.Millisecond })
			op := s.asks("o5")
			s.ends(op.ID, "canceled")
			expect(t, "the payment again", s.payOf("pay-o5", "o5", "10000.00", "EUR"), 409, problem.ApprovalExpired)
			expect(t, "a yes after that", s.decide("late-o5", op, "approve"), 409, problem.ApprovalExpired)
		})
		s.healthy()
	})
}

// told is what the log tells of people about an operation: the event, and, of a decision, who has made it about which fingerprint.
func (r running) told(op operation) (all []string) {
	r.t.Helper()
	err := r.db.Read(r.t.Context()).Raw(`SELECT e.type || ' ' || CASE WHEN e.type = 'approval_requested' THEN '' ELSE e.principal END FROM events e
		JOIN operations o ON o.account_id = e.account_id AND o.id = e.operation_id AND o.fingerprint = e.fingerprint
		WHERE e.operation_id = ? AND e.type IN ('approval_requested', 'approved', 'rejected', 'expired') ORDER BY e.at`, op.ID).Scan(&all).Error
	if err != nil {
		r.t.Error(err)
	}
	return all
}

func TestARefundThatAsks(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)

		t.Run("holds what it takes while it waits, and shows what others take", func(t *testing.T) {
			s := s.at(t)
			p := s.captured("o1")
			if a := s.refund("r1", p.ID, "2.50", wait); a.Status != 201 {
				t.Fatalf("%s", a)
			}
			op := s.accepted(s.refund("r2", p.ID, "4"))
			if now := s.payment(p.ID); now.ReservedMinor != 400 || now.RefundableMinor != 600 {
				t.Errorf("%+v", now)
			}
			facts := s.question(op).Facts
			for name, want := range map[string]string{"amount": "4.00", "captured": "12.50", "other_refunds": "2.50", "remaining": "6.00", "reason": "It rained.", "payee": "Bakery Brown"} {
				if facts[name] != want {
					t.Errorf("%s is %v, want %s", name, facts[name], want)
				}
			}
			if got := read[refund](s, op.Resource.Href); got.State != "awaiting_approval" {
				t.Errorf("%+v", got)
			}
			s.decide("no-r2", op, "reject")
			if now := s.payment(p.ID); now.ReservedMinor != 0 || now.RefundableMinor != 1000 {
				t.Errorf("%+v", now)
			}
		})

		t.Run("is stale once another has gone out that was not shown, and not because one was refused", func(t *testing.T) {
			s := s.at(t)
			p := s.captured("o2")
			s.refund("r3", p.ID, "1", wait)
			one, two, three := s.accepted(s.refund("r4", p.ID, "2")), s.accepted(s.refund("r5", p.ID, "3")), s.accepted(s.refund("r6", p.ID, "4"))
			s.decide("no-r4", one, "reject")
			if yes := s.decide("yes-r5", two, "approve"); yes.Status != 200 {
				t.Errorf("%s", yes)
			}
			s.ends(two.ID, "succeeded")
			expect(t, "the third", s.decide("yes-r6", three, "approve"), 409, problem.ApprovalStale)
			expect(t, "the third refund again", s.refund("r6", p.ID, "4"), 409, problem.ApprovalStale)
			if now := s.payment(p.ID); now.RefundedMinor != 400 || now.ReservedMinor != 0 {
				t.Errorf("%+v", now)
			}
		})

		t.Run("does not ask when the other was declined", func(t *testing.T) {
			s := s.at(t)
			s.put("o3")
			odd := s.replica(card("pm_card_refundFail"))
			p := odd.done(odd.pay("p3", "o3", wait), "authorized")
			odd.done(odd.capture("c3", p.ID, "12.50", wait), "captured")
			expect(t, "declined", odd.refund("r7", p.ID, "1", wait), 402, problem.RefundDeclined)
			if op := s.accepted(s.refund("r8", p.ID, "1")); op.ApprovalID != "" {
				t.Errorf("%+v", op)
			} else {
				s.becomes(op.ID, "is over", func(op operation) bool { return op.State == "failed" })
			}
		})
		s.healthy()
	})
}

// Two yeses at the same time to refunds of one payment: whoever says the later one was not shown the other.
func TestTwoYesesToRefundsOfOnePayment(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		one := start(t, kind)
		two := one.replica()
		for i := range 6 {
			id := fmt.Sprintf("o-%d", i)
			p := one.captured(id)
			one.refund("r-"+id, p.ID, "1", wait)
			ops := []operation{one.accepted(one.refund("a-"+id, p.ID, "2")), one.accepted(one.refund("b-"+id, p.ID, "2"))}
			yes := 0
			for _, a := range atOnce(
				func() servertest.Answer { return one.decide("yes-a-"+id, ops[0], "approve") },
				func() servertest.Answer { return two.decide("yes-b-"+id, ops[1], "approve") },
			) {
				if a.Status == 200 {
					yes++
				} else {
					expect(t, id, a, 409, problem.ApprovalStale)
				}
			}
			done := 0
			for _, op := range ops {
				if one.becomes(op.ID, "is over", func(op operation) bool { return op.State == "succeeded" || op.State == "canceled" }).State == "succeeded" {
					done++
				}
			}
			if yes != 1 || done != 1 {
				t.Errorf("%d of two were approved, and %d happened", yes, done)
			}
		}
		one.healthy()
	})
}
