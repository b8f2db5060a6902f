package scenarios

import (
	"net/http"

	"github.com/einmal/einmal/e2e/harness"
)

var zeroAndThreeDigitCurrencies = Scenario{
	Name:    "zero_and_three_digit_currencies",
	Promise: "What reaches the provider are exactly the minor units of the currency, be they none, two, three or four; what is no amount of it reaches nothing.",
	run: func(s *Stage) int {
		t := s.Till(patient)
		replica := t.Replica()
		effects := 0
		for _, c := range []struct {
			currency, amount, part string
			minor, partMinor       int64
			wrong                  []string
		}{
			{"JPY", "2000", "500", 2000, 500, []string{"20.00", "2000.0", "0"}},
			{"KRW", "2000", "500", 2000, 500, []string{"0.5"}},
			{"EUR", "20.00", "0.01", 2000, 1, []string{"20.001", "20.000", "-1", "1e3", "2,50", "0.00", "020.00"}},
			{"KWD", "92.000", "0.001", 92000, 1, []string{"92.0001"}},
			{"CLF", "1.2345", "0.0001", 12345, 1, []string{"1.23456"}},
			{"KWD", "999999999999.999", "1", 999999999999999, 1000, []string{"1000000000000"}},
		} {
			o := t.PutOrder(replica, c.amount, c.currency)
			t.refusesAmounts(replica, o, c.wrong)
			paid := t.Done(replica, t.Pays(o))
			t.Done(replica, t.Captures(paid, c.amount))
			back := t.Done(replica, t.Refunds(paid, c.part))
			for _, want := range []struct {
				a     *Act
				minor int64
			}{{paid, c.minor}, {back, c.partMinor}} {
				got := t.psp.Effect(want.a.Kind, want.a.EffectKey)[0]
				t.Check(got.AmountMinor == want.minor && got.Currency == c.currency, "%s %s reached the provider as %s", c.amount, c.currency, summary(t.psp.Effects(want.a.EffectKey)))
			}
			effects += 3
		}
		return effects
	},
}

// refusesAmounts ends the scenario unless each amount is refused, with nothing claimed.
func (t *Till) refusesAmounts(replica *harness.Service, o order, amounts []string) {
	operations, calls := t.Count("SELECT count(*) FROM operations"), len(t.psp.calls())
	for _, amount := range amounts {
		wrong := o
		wrong.Amount = amount
		t.Problem("an order about "+amount+" "+o.Currency, t.Put(replica, t.NewKey(), wrong), http.StatusUnprocessableEntity, "validation-failed")
		t.Problem("a payment of "+amount+" "+o.Currency, t.Ask(replica, t.Pays(wrong)), http.StatusUnprocessableEntity, "validation-failed")
	}
	t.Check(t.Count("SELECT count(*) FROM operations") == operations, "an amount that is none has claimed its key")
	t.Check(len(t.psp.calls()) == calls, "an amount that is none has reached the provider")
}
