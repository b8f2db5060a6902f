package payments_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/problem"
	"github.com/einmal/einmal/pkg/server/servertest"
)

// rounds is how often a race is run: often enough for both to come first.
const rounds = 15

// atOnce makes requests at the same time.
func atOnce(requests ...func() servertest.Answer) (answers []servertest.Answer) {
	answers = make([]servertest.Answer, len(requests))
	begin := make(chan struct{})
	var running sync.WaitGroup
	for i, request := range requests {
		running.Go(func() {
			<-begin
			answers[i] = request()
		})
	}
	close(begin)
	running.Wait()
	return answers
}

// Two keys, one order: one payment.
func TestTwoPaymentsOfOneOrder(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		one := start(t, kind)
		two := one.replica()
		for i := range rounds {
			id := fmt.Sprintf("o-%d", i)
			one.put(id)
			accepted := 0
			for _, a := range atOnce(
				func() servertest.Answer { return one.pay("a-"+id, id) },
				func() servertest.Answer { return two.pay("b-"+id, id) },
				func() servertest.Answer { return one.pay("c-"+id, id) },
			) {
				if a.Status == 202 {
					accepted++
					one.ends(of[operation](t, a).ID, "succeeded")
				} else {
					expect(t, id, a, 409, problem.OrderBusy)
				}
			}
			if accepted != 1 {
				t.Errorf("%d payments of %s", accepted, id)
			}
		}
		if n := len(one.psp.ledger()); n != rounds {
			t.Errorf("%d effects", n)
		}
		one.healthy()
	})
}

// A capture and a cancel: one happens. Refunds: no more than there is.
func TestChangesOfOnePayment(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		one := start(t, kind)
		two := one.replica()
		captured := 0
		for i := range rounds {
			id := fmt.Sprintf("o-%d", i)
			p := one.authorized(id)
			first := func() servertest.Answer { return one.capture("c-"+id, p.ID, "10", wait) }
			second := func() servertest.Answer { return two.cancel("x-"+id, p.ID, wait) }
			done := 0
			for _, a := range atOnce(first, second) {
				if a.Status == 200 {
					done++
				} else if code := a.Problem(t).Code; code != problem.PaymentBusy && code != problem.PaymentNotCapturable && code != problem.PaymentNotCancelable {
					t.Errorf("%s", a)
				}
			}
			if done != 1 {
				t.Errorf("%d of capture and cancel happened to %s", done, id)
			}
			if one.payment(p.ID).State != "captured" {
				continue
			}
			captured++
			accepted := 0
			for _, a := range atOnce(
				func() servertest.Answer { return one.refund("r1-"+id, p.ID, "6") },
				func() servertest.Answer { return two.refund("r2-"+id, p.ID, "6") },
			) {
				if a.Status == 202 {
					accepted++
					one.ends(of[operation](t, a).ID, "succeeded")
				} else if refused := expect(t, id, a, 409, problem.RefundExceedsRemaining); refused.Remaining != "4.00" {
					t.Errorf("%+v", refused)
				}
			}
			if now := one.payment(p.ID); accepted != 1 || now.RefundedMinor != 600 || now.ReservedMinor != 0 {
				t.Errorf("%d refunds: %+v", accepted, now)
			}
		}
		t.Logf("%d of %d were captured", captured, rounds)
		one.healthy()
	})
}

// An order that is changed while it is paid: nobody pays what it does not say.
func TestAnOrderThatIsChangedWhileItIsPaid(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		one := start(t, kind)
		two := one.replica()
		for i := range rounds {
			id := fmt.Sprintf("o-%d", i)
			one.put(id)
			answers := atOnce(
				func() servertest.Answer {
					return one.agent().Send(t, "PUT", "/v1/orders/"+id, `{"amount":"99","currency":"EUR","payee":"Bakery Brown"}`, key("other-%s", id))
				},
				func() servertest.Answer { return two.pay("pay-"+id, id, wait) },
			)
			switch put, paid := answers[0], answers[1]; {
			case put.Status == 200 && paid.Status == 409:
				expect(t, id, paid, 409, problem.OrderMismatch)
			case put.Status == 409 && paid.Status == 201:
				expect(t, id, put, 409, problem.OrderFrozen)
			default:
				t.Errorf("%s\n%s", put, paid)
			}
		}
		one.healthy()
	})
}

// Many orders of one name at once are one order.
func TestOneOrderIsPutManyTimes(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		one := start(t, kind)
		two := one.replica()
		for i := range rounds {
			id := fmt.Sprintf("o-%d", i)
			var puts []func() servertest.Answer
			for j, s := range []running{one, two, one, two} {
				puts = append(puts, func() servertest.Answer {
					return s.agent().Send(t, "PUT", "/v1/orders/"+id, fmt.Sprintf(`{"amount":"%d","currency":"EUR","payee":"p"}`, j+1), key("%s-%d", id, j))
				})
			}
			created, changed := 0, 0
			for _, a := range atOnce(puts...) {
				switch {
				case a.Status == 201:
					created++
				case a.Status == 200 && of[order](t, a).Changed:
					changed++
				default:
					t.Errorf("%s", a)
				}
			}
			if got := read[order](one, "/v1/orders/"+id); created != 1 || changed != 3 || got.Version != 4 {
				t.Errorf("%d created, %d changed: %+v", created, changed, got)
			}
		}
		one.healthy()
	})
}
