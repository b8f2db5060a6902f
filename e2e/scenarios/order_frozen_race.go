package scenarios

import (
	"net/http"
	"sync"

	"github.com/einmal/einmal/e2e/harness"
)

var orderFrozenRace = Scenario{
	Name:    "order_frozen_race",
	Promise: "An order that is changed while it is paid: either the change comes first and the payment is refused, or the order is frozen. Nobody pays what it does not say.",
	run: func(s *Stage) int {
		t := s.Till(patient)
		replicas := []*harness.Service{t.Replica(), t.Replica()}
		const rounds = 25
		paid := 0
		for range rounds {
			o := t.NewOrder(replicas[0])
			changed, pays, key := o, t.Pays(o), t.NewKey()
			changed.Amount = "1.00"
			var change, payment harness.Answer
			start := make(chan struct{})
			var both sync.WaitGroup
			both.Go(func() { <-start; change = t.Put(replicas[0], key, changed) })
			both.Go(func() { <-start; payment = t.Ask(replicas[1], pays) })
			close(start)
			both.Wait()

			if payment.Status == http.StatusAccepted {
				paid++
				t.Accepted(pays, payment)
				t.Problem("the change of an order that is paid", change, http.StatusConflict, "order-frozen")
				t.Succeeds(replicas[0], pays)
				continue
			}
			t.Check(change.Status == http.StatusOK, "neither was done: the change got %v, the payment %v", change, payment)
			// It met the change, or came after it.
			t.Check(payment.Text("code") == "order-mismatch" || payment.Text("code") == "order-busy", "the payment of an order that has changed: got %v", payment)
			t.Problem("the payment again", t.Ask(replicas[1], pays), http.StatusConflict, "order-mismatch")
		}
		t.Notef("%d rounds, of which the payment came first in %d", rounds, paid)
		return paid
	},
}
