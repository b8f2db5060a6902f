package payments_test

import (
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/problem"
	"github.com/einmal/einmal/pkg/server/servertest"
	"github.com/einmal/einmal/services/payments"
)

// verb is one of the things that the provider is asked to do.
type verb struct {
	call    string // the provider's name of the call that moves something
	kind    string // of its effect in the ledger
	minor   int64
	prepare func(r running, name string) (send func() servertest.Answer)
}

var verbs = []verb{
	{"confirm", "authorize", 1250, func(r running, name string) func() servertest.Answer {
		r.put(name)
		return func() servertest.Answer { return r.pay(name, name) }
	}},
	{"capture", "capture", 1000, func(r running, name string) func() servertest.Answer {
		p := r.authorized(name)
		return func() servertest.Answer { return r.capture(name, p.ID, "10") }
	}},
	{"cancel", "void", 1250, func(r running, name string) func() servertest.Answer {
		p := r.authorized(name)
		return func() servertest.Answer { return r.cancel(name, p.ID) }
	}},
	{"refund", "refund", 500, func(r running, name string) func() servertest.Answer {
		p := r.captured(name)
		return func() servertest.Answer { return r.refund(name, p.ID, "5") }
	}},
}

// misfortune is what can befall a call.
type misfortune struct {
	name, when, action string
	more               []string
}

var misfortunes = []misfortune{
	{"the answer is lost in a reset", "after", "reset", nil},
	{"the answer is lost without a word", "after", "lose", nil},
	{"the answer does not come", "after", "hang", nil},
	{"the answer is a 500 that the provider keeps", "after", "status", []string{`"status":500`}},
	{"the answer is a 502 of something in between", "after", "status", []string{`"status":502`}},
	{"the answer is a 403 of a guard that looks at answers", "after", "status", []string{`"status":403`}},
	{"the answer is a 401 of a page to log in", "after", "status", []string{`"status":401`}},
	{"the answer is a 402 that is not the provider's", "after", "status", []string{`"status":402`}},
	{"the request is lost in a reset", "before", "reset", nil},
	{"the request is never answered", "before", "hang", nil},
	{"the request is answered 500 before it is looked at", "before", "status", []string{`"status":500`}},
	{"the request is answered 409", "before", "status", []string{`"status":409`}},
	{"the request is redirected", "before", "status", []string{`"status":307`}},
	{"the provider has no time", "before", "status", []string{`"status":429`}},
	{"the provider does not know our key", "before", "status", []string{`"status":401`}},
}

// all sends as many operations as there are misfortunes, all of which strike the calls of a kind, and returns how they ended. A
// repeated send may meet the next of them.
func all(s running, call string, prepare func(r running, name string) func() servertest.Answer) (ended []operation) {
	s.t.Helper()
	var sends []func() servertest.Answer
	for i := range misfortunes {
		sends = append(sends, prepare(s, fmt.Sprintf("o-%d", i)))
	}
	for _, m := range misfortunes {
		s.psp.arm(call, m.when, m.action, m.more...)
	}
	var open []operation
	for _, send := range sends {
		open = append(open, s.accepted(send()))
	}
	for _, op := range open {
		ended = append(ended, s.ends(op.ID, "succeeded"))
	}
	s.psp.struck(len(misfortunes))
	return ended
}

func TestEachEffectHappensOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		for _, how := range keys {
			for _, v := range verbs {
				t.Run(v.call+", whatever befalls it, at a provider that does "+how+" keys", func(t *testing.T) {
					t.Parallel() // it waits most of its time
					s := start(t, kind)
					s.psp.treatsKeys(how)
					ended := all(s, v.call, v.prepare)
					ledger := s.psp.ledger()
					for _, op := range ended {
						effects := 0
						for _, e := range ledger {
							if e.Kind == v.kind && e.Reference == op.Reference && e.AmountMinor == v.minor {
								effects++
							}
						}
						if effects != 1 || op.Effect != "applied" {
							t.Errorf("%d effects of %+v", effects, op)
						}
					}
					s.healthy()
				})
			}
		}
	})
}

// Making a payment at the provider moves nothing, so whatever becomes of that, nothing is in doubt.
func TestMakingAPaymentIsRepeated(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		for _, how := range keys {
			t.Run("at a provider that does "+how+" keys", func(t *testing.T) {
				t.Parallel() // it waits most of its time
				s := start(t, kind)
				s.psp.treatsKeys(how)
				notSent := 0
				for _, op := range all(s, "create", verbs[0].prepare) {
					outcomes := op.outcomes()
					notSent += len(outcomes) - 1
					if last := len(outcomes) - 1; outcomes[last] != "confirmed" || slices.Contains(outcomes, "ambiguous") {
						t.Errorf("%+v", op)
					}
				}
				if notSent < len(misfortunes) {
					t.Errorf("%d sends came to nothing", notSent)
				}
				authorized := 0
				for _, i := range s.psp.intents() {
					if i.Status == "requires_capture" {
						authorized++
					}
				}
				if authorized != len(misfortunes) {
					t.Errorf("%d payments are authorized there", authorized)
				}
				s.healthy()
			})
		}
	})
}

// What a send is seen as decides what follows.
func TestWhatASendIsSeenAs(t *testing.T) {
	s := start(t, database.SQLite)
	s.psp.treatsKeys("ignore") // a 402 of a fault would else be followed by a yes
	for i, c := range []struct {
		misfortune
		want string
	}{
		{misfortune{"a redirect", "before", "status", []string{`"status":307`}}, "ambiguous"},
		{misfortune{"a request that is wrong", "before", "status", []string{`"status":400`}}, "refused"},
		{misfortune{"a key of ours that is unknown", "before", "status", []string{`"status":401`}}, "not_sent"},
		{misfortune{"a card that is declined", "before", "status", []string{`"status":402`}}, "refused"},
		{misfortune{"a key of ours that may not", "before", "status", []string{`"status":403`}}, "not_sent"},
		{misfortune{"a request that took too long", "before", "status", []string{`"status":408`}}, "ambiguous"},
		{misfortune{"an effect key that is in use", "before", "status", []string{`"status":409`}}, "ambiguous"},
		{misfortune{"too many requests", "before", "status", []string{`"status":429`}}, "not_sent"},
		{misfortune{"a failure", "before", "status", []string{`"status":500`}}, "ambiguous"},
		{misfortune{"a provider that is down", "before", "status", []string{`"status":503`}}, "ambiguous"},
		{misfortune{"a reset", "before", "reset", nil}, "ambiguous"},
	} {
		for _, v := range verbs[:2] {
			t.Run(v.call+": "+c.name, func(t *testing.T) {
				s := s.at(t)
				send := v.prepare(s, fmt.Sprintf("%s-%d", v.call, i))
				s.psp.arm(v.call, c.when, c.action, c.more...)
				op := s.accepted(send())
				op = s.becomes(op.ID, "was sent", func(op operation) bool { return len(op.Attempts) > 0 && op.Attempts[0].Outcome != "" })
				if op.Attempts[0].Outcome != c.want || op.Attempts[0].Error == "" {
					t.Errorf("%+v, want %s", op.Attempts, c.want)
				}
				s.psp.struck(1)
				s.psp.Disarm()
				s.becomes(op.ID, "has ended, so that it takes no fault of the next", func(op operation) bool { return op.Response.Status != 0 })
			})
		}
	}
}

// A card's bank says no: kept under our key, so it is final, also where the answer was lost.
func TestDeclines(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		for _, how := range keys {
			t.Run("at a provider that does "+how+" keys", func(t *testing.T) {
				t.Parallel() // it waits most of its time
				s := start(t, kind, card("pm_card_chargeDeclined"))
				s.psp.treatsKeys(how)
				for i, fault := range []string{"", "reset", "hang", "lose"} {
					if fault != "" {
						s.psp.arm("confirm", "after", fault)
					}
					id := fmt.Sprintf("o-%d", i)
					s.put(id)
					expect(t, fault, s.pay(id, id, wait), 402, problem.PaymentDeclined)
					if o := read[order](s, "/v1/orders/"+id); o.State != "open" {
						t.Errorf("%+v", o)
					}
				}
				s.psp.struck(3)
				s.psp.has()
				s.healthy()
			})
		}
	})
}

// A card that asks its owner is not authorised. Nobody will say yes, so in the end it is closed, and the order can be paid.
func TestACardThatAsksItsOwner(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind, card("pm_card_authenticationRequired"))
		s.put("o")
		op := s.accepted(s.pay("k", "o"))
		s.becomes(op.ID, "is unknown", func(op operation) bool { return op.State == "unknown" })
		a := s.agent().Send(t, "POST", "/v1/operations/"+op.ID+"/cancel", `{}`, key("x"))
		if a.Status != 202 {
			t.Fatalf("%s", a)
		}
		s.ends(op.ID, "canceled")
		if p := s.payment(op.Resource.ID); p.State != "canceled" {
			t.Errorf("%+v", p)
		}
		if i := s.psp.intents(); len(i) != 1 || i[0].Status != "canceled" {
			t.Errorf("%+v", i)
		}
		s.psp.has()
		s.healthy()
	})
}

// A provider that is not there has not been sent anything.
func TestAProviderThatIsNotThere(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listener.Close()
		s := start(t, kind)
		down := s.replica(func(c *payments.Config) { c.ProviderURL = "http://" + listener.Addr().String() })
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
		down.put("o")
		op := down.accepted(down.pay("k", "o"))
		op = down.becomes(op.ID, "was tried", func(op operation) bool { return len(op.Attempts) > 0 && op.Attempts[0].Outcome != "" })
		if op.Attempts[0].Outcome != "not_sent" || op.Attempts[0].Error == "" {
			t.Errorf("%+v", op)
		}
		down.becomes(op.ID, "waits", func(op operation) bool { return op.State == "queued" && op.Effect == "none" })
		a := down.agent().Send(t, "POST", "/v1/operations/"+op.ID+"/cancel", `{}`, key("x"))
		if a.Status != 200 && a.Status != 202 { // 202 while it is being tried once more
			t.Errorf("%s", a)
		}
		down.becomes(op.ID, "is withdrawn", func(op operation) bool { return op.State == "canceled" })
		if p := down.payment(op.Resource.ID); p.State != "canceled" {
			t.Errorf("%+v", p)
		}
		down.healthy()
	})
}

// While nobody knows whether a payment was authorised, its order takes no other.
func TestUnknownIsLive(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)
		s.put("o")
		s.psp.arm("confirm", "after", "reset")
		s.psp.arm("retrieve", "before", "reset", `"times":1000`)
		op := s.accepted(s.pay("k", "o"))
		s.becomes(op.ID, "is unknown", func(op operation) bool { return op.State == "unknown" })
		p := s.payment(op.Resource.ID)
		if p.State != "unknown" || p.Reference == "" {
			t.Errorf("%+v", p)
		}
		if o := read[order](s, "/v1/orders/o"); o.State != "busy" || o.PaymentID != p.ID {
			t.Errorf("%+v", o)
		}
		for state, want := range map[string]int{"unknown": 1, "pending": 0, "authorized": 0} {
			if page := read[struct{ Items []payment }](s, "/v1/payments?order_id=o&state="+state); len(page.Items) != want {
				t.Errorf("%s: %+v", state, page)
			}
		}
		expect(t, "another", s.pay("k2", "o"), 409, problem.OrderBusy)
		expect(t, "capture", s.capture("c", p.ID, "1"), 409, problem.PaymentBusy)
		s.psp.Disarm()
		s.ends(op.ID, "succeeded")
		expect(t, "another", s.pay("k2", "o"), 409, problem.OrderBusy)
		s.psp.has("authorize 1250 EUR")
		s.healthy()
	})
}

// What the provider refuses because of the state of its object is looked up: maybe it is as we want it, maybe it never will be.
func TestRefusalsAboutTheState(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)

		t.Run("already captured, with our amount, is success", func(t *testing.T) {
			s := s.at(t)
			p := s.authorized("o1")
			s.psp.does("payment_intents/"+p.Reference+"/capture", "amount_to_capture=1000")
			a := s.capture("k1", p.ID, "10", wait)
			if got := s.done(a, "captured"); got.CapturedMinor != 1000 {
				t.Errorf("%+v", got)
			}
			if diff := cmp.Diff([]string{"ambiguous"}, s.operation(a.Header.Get("Operation-Id")).outcomes()); diff != "" {
				t.Error(diff)
			}
		})

		t.Run("already captured, with another amount, is for a person", func(t *testing.T) {
			s := s.at(t)
			p := s.authorized("o2")
			s.psp.does("payment_intents/"+p.Reference+"/capture", "amount_to_capture=999")
			op := s.accepted(s.capture("k2", p.ID, "10"))
			op = s.becomes(op.ID, "is with a person", func(op operation) bool { return op.ReviewID != "" })
			if op.State != "unknown" || op.NextAction != "ask_human" {
				t.Errorf("%+v", op)
			}
			if got := s.payment(p.ID); got.State != "authorized" || got.OpenOperationID != op.ID || got.CapturedMinor != 0 {
				t.Errorf("%+v", got)
			}
			expect(t, "another", s.cancel("x2", p.ID), 409, problem.PaymentBusy)
		})

		t.Run("canceled at the provider can't be captured any more", func(t *testing.T) {
			s := s.at(t)
			p := s.authorized("o3")
			s.psp.does("payment_intents/"+p.Reference+"/cancel", "")
			expect(t, "capture", s.capture("k3", p.ID, "10", wait), 409, problem.PaymentNotCapturable)
			s.done(s.cancel("x3", p.ID, wait), "canceled") // which it is
		})

		t.Run("captured at the provider can't be canceled any more", func(t *testing.T) {
			s := s.at(t)
			p := s.authorized("o4")
			s.psp.does("payment_intents/"+p.Reference+"/capture", "")
			expect(t, "cancel", s.cancel("k4", p.ID, wait), 409, problem.PaymentNotCancelable)
			s.done(s.capture("c4", p.ID, "12.50", wait), "captured") // which it is
		})

		t.Run("refunded at the provider leaves nothing for a refund of ours", func(t *testing.T) {
			s := s.at(t)
			p := s.captured("o5")
			s.psp.does("refunds", "payment_intent="+p.Reference+"&amount=1000")
			a := s.refund("k5", p.ID, "5", wait)
			expect(t, "refund", a, 409, problem.EffectRefused)
			if got := s.payment(p.ID); got.ReservedMinor != 0 {
				t.Errorf("%+v", got)
			}
		})
		s.healthy()
	})
}

// A capture or cancel that is declined leaves the payment as it was.
func TestAChangeThatIsDeclined(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)
		p := s.authorized("o")
		s.psp.arm("cancel", "before", "status", `"status":402`)
		expect(t, "cancel", s.cancel("x", p.ID, wait), 409, problem.PaymentNotCancelable)
		s.psp.arm("capture", "before", "status", `"status":402`)
		expect(t, "capture", s.capture("c", p.ID, "10", wait), 409, problem.PaymentNotCapturable)
		if got := s.payment(p.ID); got != p {
			t.Errorf("%+v, then %+v", p, got)
		}
		s.psp.struck(2)
		s.done(s.capture("c2", p.ID, "10", wait), "captured")
		s.healthy()
	})
}

// A person can end what no machine can.
func TestAPersonDecides(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)
		for _, c := range []struct {
			says, state string
			captured    int64
		}{{"succeeded", "captured", 999}, {"failed", "authorized", 0}, {"canceled", "authorized", 0}} {
			p := s.authorized("o-" + c.says)
			s.psp.does("payment_intents/"+p.Reference+"/capture", "amount_to_capture=999") // another amount than ours
			op := s.accepted(s.capture("c-"+c.says, p.ID, "10"))
			op = s.becomes(op.ID, "is with a person", func(op operation) bool { return op.ReviewID != "" })
			a := s.As("demo-operator").Send(t, "POST", "/v1/reviews/"+op.ReviewID+"/resolution", `{"state":"`+c.says+`","evidence":"As agreed with the payee."}`, key("decide-%s", c.says))
			if got := s.payment(p.ID); a.Status != 200 || got.State != c.state || got.OpenOperationID != "" || got.CapturedMinor != c.captured {
				t.Errorf("%s: %+v", a, got)
			}
			s.ends(op.ID, c.says)
		}
		if v := s.fsck(); len(v) != 0 {
			t.Errorf("%+v", v)
		}
	})
}

// Who has lost the effect to somebody else between making the payment and storing its reference confirms nothing.
func TestOnlyTheStoredReferenceIsConfirmed(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)
		s.psp.treatsKeys("ignore")
		s.put("o")
		s.psp.arm("create", "after", "delay", `"delay_ms":400`)
		op := s.accepted(s.pay("k", "o"))
		s.becomes(op.ID, "is making the payment", func(operation) bool { return s.psp.calls("create") == 1 })
		if err := s.db.Read(t.Context()).Exec("UPDATE effects SET fence = fence + 1").Error; err != nil {
			t.Fatal(err)
		}
		op = s.becomes(op.ID, "has given up", func(op operation) bool { return op.Attempts[0].Outcome != "" })
		if op.Attempts[0].Outcome != "not_sent" || s.psp.calls("confirm") != 0 {
			t.Errorf("%+v, %d confirms", op, s.psp.calls("confirm"))
		}
		op = s.ends(op.ID, "succeeded")
		intents := s.psp.intents()
		if len(intents) != 2 || intents[0].Status != "requires_confirmation" || intents[1].ID != op.Reference {
			t.Errorf("%+v: %+v", op, intents)
		}
		s.psp.has("authorize 1250 EUR")
		s.healthy()
	})
}

// Withdrawing what may be authorised closes it at the provider first.
func TestClosing(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		for _, c := range []struct {
			name       string
			call, when string
			want       string
			ledger     []string
		}{
			{"what was never confirmed is canceled", "confirm", "before", "canceled", nil},
			{"what was authorized has succeeded", "confirm", "after", "succeeded", []string{"authorize 1250 EUR"}},
		} {
			t.Run(c.name, func(t *testing.T) {
				s := start(t, kind)
				s.put("o")
				s.psp.arm(c.call, c.when, "hang")
				op := s.accepted(s.pay("k", "o"))
				s.becomes(op.ID, "is sent", func(op operation) bool { return op.State == "running" && s.psp.calls(c.call) == 1 })
				if a := s.agent().Send(t, "POST", "/v1/operations/"+op.ID+"/cancel", `{}`, key("x")); a.Status != 202 {
					t.Fatalf("%s", a)
				}
				s.ends(op.ID, c.want)
				s.psp.has(c.ledger...)
				if c.want == "canceled" {
					if i := s.psp.intents(); len(i) != 1 || i[0].Status != "canceled" {
						t.Errorf("a late confirm could still authorise: %+v", i)
					}
					s.done(s.pay("k2", "o", wait), "authorized")
				}
				s.healthy()
			})
		}

		t.Run("what is authorized between the look and the cancel is made void", func(t *testing.T) {
			s := start(t, kind)
			s.put("o")
			s.psp.arm("confirm", "before", "hang")
			s.psp.arm("cancel", "before", "delay", `"delay_ms":400`)
			op := s.accepted(s.pay("k", "o"))
			s.becomes(op.ID, "is sent", func(operation) bool { return s.psp.calls("confirm") == 1 })
			if a := s.agent().Send(t, "POST", "/v1/operations/"+op.ID+"/cancel", `{}`, key("x")); a.Status != 202 {
				t.Fatalf("%s", a)
			}
			s.becomes(op.ID, "is being closed", func(operation) bool { return s.psp.calls("cancel") == 1 })
			s.psp.does("payment_intents/"+s.psp.intents()[0].ID+"/confirm", "")
			s.ends(op.ID, "canceled")
			s.psp.has("authorize 1250 EUR", "void 1250 EUR")
			s.done(s.pay("k2", "o", wait), "authorized")
			s.healthy()
		})
	})
}

// Where a provider keeps failing, the budget ends, and with it the doubt: what can be closed is closed.
func TestAttemptsEnd(t *testing.T) {
	s := start(t, database.SQLite, func(c *payments.Config) { c.KeyWindow = c.ProviderTimeout + 1500*time.Millisecond })
	s.put("o")
	s.psp.arm("confirm", "before", "reset", `"times":1000`)
	a := s.pay("k", "o", wait)
	expect(t, "exhausted", a, 409, problem.AttemptsExhausted)
	if i := s.psp.intents(); len(i) != 1 || i[0].Status != "canceled" {
		t.Errorf("%+v", i)
	}
	s.psp.Disarm()
	s.done(s.pay("k2", "o", wait), "authorized")
	s.healthy()
}
