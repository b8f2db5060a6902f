package scenarios

import (
	"net/http"

	"github.com/einmal/einmal/services/simulator"
)

var pspTimesOutAfterCharging = Scenario{
	Name:    "psp_times_out_after_charging",
	Promise: "A provider that moves the money and gives no answer is asked, not sent to again: authorised, captured and refunded once.",
	Injects: true,
	run: func(s *Stage) int {
		return s.EachKeys(brisk, func(t *Till) int {
			return t.throughAll(func(operation string) { t.psp.Next(operation, simulator.After, simulator.Hang) })
		})
	},
}

var pspResets = Scenario{
	Name:    "psp_resets",
	Promise: "A connection to the provider that is reset, before or after the money moved, moves it neither twice nor never.",
	Injects: true,
	run: func(s *Stage) int {
		return s.EachKeys(brisk, func(t *Till) int {
			return t.throughAll(func(operation string) { t.psp.Next(operation, simulator.Before, simulator.Reset) }) +
				t.throughAll(func(operation string) { t.psp.Next(operation, simulator.After, simulator.Reset) })
		})
	},
}

var pspNeverReceived = Scenario{
	Name:    "psp_never_received",
	Promise: "A request that the provider never worked on is found to have done nothing and is sent again, or closed, and never leaves a payment in the air.",
	Injects: true,
	run: func(s *Stage) int {
		return s.EachKeys(brisk, func(t *Till) int {
			return t.throughAll(func(operation string) { t.psp.Next(operation, simulator.Before, simulator.Hang) }) +
				t.throughAll(func(operation string) { t.psp.Next(operation, simulator.Before, simulator.Lose) })
		})
	},
}

var pspAnswers500AfterCharging = Scenario{
	Name:    "psp_answers_500_after_charging",
	Promise: "An error that the provider keeps under our key, although the money has moved, is no evidence: the provider is asked what happened.",
	Injects: true,
	run: func(s *Stage) int {
		return s.EachKeys(brisk, func(t *Till) int {
			return t.throughAll(func(operation string) {
				t.psp.NextAnswered(operation, simulator.After, http.StatusInternalServerError, 1)
			})
		})
	},
}

// throughAll lets an order be paid and the money go back, and another payment be canceled, each call struck, and returns how many effects that
// makes.
func (t *Till) throughAll(strike func(operation string)) (effects int) {
	replica := t.Replica()
	struck := func(operation string, a *Act) *Act {
		t.psp.Disarm()
		strike(operation)
		t.Begin(replica, a)
		t.psp.AwaitFired(1)
		t.Succeeds(replica, a)
		return a
	}
	paid := struck(confirm, t.Pays(t.NewOrder(replica)))
	struck(capture, t.Captures(paid, "80.00"))
	struck(refund, t.Refunds(paid, "30.00"))
	struck(cancel, t.Cancels(struck(create, t.Pays(t.NewOrder(replica)))))
	return 5
}
