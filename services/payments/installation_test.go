package payments_test

import (
	"testing"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/services/payments"
)

// Two installations under one name share a provider, an account's name, and keys.
func TestTwoInstallationsUnderOneName(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		shared := func(c *payments.Config) { c.Namespace = "shared" }
		one := start(t, kind, shared)
		other := startWith(t, kind, one.psp, shared)
		one.put("o")
		one.ends(one.accepted(one.pay("k", "o")).ID, "succeeded")
		other.putOf("o", "7.00", "EUR")
		op := other.becomes(other.accepted(other.payOf("k", "o", "7.00", "EUR")).ID, "is with a person", func(op operation) bool { return op.ReviewID != "" })
		other.agent().Send(t, "POST", "/v1/operations/"+op.ID+"/reconcile", "{}", key("r"))
		op = other.operation(op.ID)
		if op.State != "unknown" || op.Reference != "" || len(op.Attempts) != 1 || op.Attempts[0].Outcome != "ambiguous" {
			t.Errorf("%+v", op)
		}
		if open := other.reviews(); len(open) != 1 || open[0].ID != op.ReviewID {
			t.Errorf("%+v", open)
		}
		one.psp.has("authorize 1250 EUR")
		other.healthy()
	})
}
