package scenarios

import agents "github.com/einmal/einmal/pkg/agent"

var budgetExhaustedHandsOver = Scenario{
	Name:    "budget_exhausted_hands_over",
	Promise: "When the attempts that it was given are made, an agent hands over, also after restarts; given more, it goes on under the same key.",
	Injects: true,
	run: func(s *Stage) int {
		t := s.Till(patient)
		replica := t.Replica()
		return s.EachWay(replica, func(e *Errand) int {
			o := t.NewOrder(replica)
			other := t.Done(replica, t.Pays(o))
			const attempts = 2
			bounded := pays("pay", o).with("budget", map[string]int{"attempts": attempts})

			// Each attempt is refused for now, since another payment is live. Where the refusals are lost, nobody can say that.
			for range 3 {
				e.Ends("an agent with a budget", e.Do(bounded), e.status(4, 3), e.outcome(agents.NeedsPerson, agents.Unknown))
				made := len(e.Entry().Attempts())
				e.Check(made == attempts, "%d attempts were made, want %d", made, attempts)
			}
			key := e.Entry().Key
			t.Done(replica, t.Cancels(other))
			e.EndsAll("an agent that is given more", e.Do(bounded.with("budget", map[string]int{"attempts": 3 * attempts})), 1)
			e.Check(e.Entry().Key == key, "the key has changed")
			e.Check(t.OrderState(replica, o) == "busy", "the order is %s, want it paid for once", t.OrderState(replica, o))
			return 3 // the other payment, its end, and ours
		})
	},
}

// pays is the step that pays an order.
func pays(name string, o order) todo {
	return todo{"step": name, "path": "/v1/payments", "body": map[string]string{"order_id": o.ID, "amount": o.Amount, "currency": o.Currency}}
}
