package scenarios

import "net/http"

var amountsEqualByValue = Scenario{
	Name:    "amounts_equal_by_value",
	Promise: "12.5 and 12.50 are one amount and one command, whichever was sent first; 12.51 is another.",
	run: func(s *Stage) int {
		t := s.Till(patient)
		replica := t.Replica()
		o := t.PutOrder(replica, "12.50", "EUR")
		same := o
		same.Amount = "12.5"
		answer := t.Put(replica, t.NewKey(), same)
		t.Check(answer.Status == http.StatusOK && answer.Is("changed", false), "the same order in another spelling: got %v, want 200 unchanged", answer)

		short, long := t.Pays(same), t.Pays(o)
		long.Key = short.Key
		t.Begin(replica, short)
		again := t.Ask(replica, long)
		t.Check(again.Err == nil && again.Header.Get("Operation-Id") == short.Operation, "the other spelling: got %v, want operation %s", again, short.Operation)
		t.Succeeds(replica, short)
		again = t.Ask(replica, long)
		t.Check(again.Outcome() == "replayed" && again.Text("amount") == "12.50" && again.Is("amount_minor", 1250.0), "the other spelling in the end: got %v", again)

		other := o
		other.Amount = "12.51"
		another := t.Pays(other)
		another.Key = short.Key
		t.Problem("another amount with the key", t.Ask(replica, another), http.StatusUnprocessableEntity, "idempotency-key-reused")
		return 1
	},
}
