package scenarios

import (
	"net/http"

	"github.com/einmal/einmal/services/simulator"
)

var paymentUnknownBlocksOrder = Scenario{
	Name:    "payment_unknown_blocks_order",
	Promise: "While nobody can say whether a payment went through, its order is neither paid again nor changed; when the provider can be asked, it is settled.",
	Injects: true,
	run: func(s *Stage) int {
		return s.EachKeys(brisk, func(t *Till) int {
			replica := t.Replica()
			t.psp.Next(confirm, simulator.After, simulator.Hang)
			t.psp.NextAnswered(retrieve, simulator.Before, http.StatusServiceUnavailable, always)
			o := t.NewOrder(replica)
			first := t.Begin(replica, t.Pays(o))
			t.AwaitState(replica, first, "unknown")
			t.psp.AwaitFired(2) // the provider was asked, and could not say
			t.AwaitState(replica, first, "unknown")
			t.Check(t.OrderState(replica, o) == "busy", "the order is %s, want it busy", t.OrderState(replica, o))

			second := t.Pays(o)
			t.Problem("a second payment", t.Ask(replica, second), http.StatusConflict, "order-busy")
			changed := o
			changed.Amount = "1.00"
			t.Problem("a change of the order", t.Put(replica, t.NewKey(), changed), http.StatusConflict, "order-frozen")

			t.psp.Disarm()
			t.Succeeds(replica, first)
			t.Problem("the second payment again", t.Ask(replica, second), http.StatusConflict, "order-busy")
			t.Done(replica, t.Captures(first, o.Amount))
			t.Problem("the second payment, of a paid order", t.Ask(replica, second), http.StatusConflict, "order-not-payable")
			return 2
		})
	},
}
