package scenarios

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/einmal/einmal/services/simulator"
)

// account is all money of one payment at the provider.
type account struct {
	order                                 string
	authorized, captured, voided, refunds int64
	captures                              int
}

// checkBooks ends the scenario unless every payment operation is final or with a person, the provider did nothing twice, no order has two
// live charges, nothing was captured or refunded beyond what was there, and our books say of all that is final what the provider's ledger says.
func (s *Stage) checkBooks() {
	if s.psp == nil {
		return
	}
	open := s.openEffects()
	s.Check(open == 0, "%d operations are neither final nor with a person", open)

	ledger := s.psp.Ledger()
	s.checkOnce(ledger)
	all, live := accounts(ledger), map[string]string{}
	for reference, a := range all {
		s.Check(a.captures <= 1, "payment %s of order %s was captured %d times", reference, a.order, a.captures)
		s.Check(a.captured <= a.authorized, "%d of the %d were captured that payment %s had authorized", a.captured, a.authorized, reference)
		s.Check(a.refunds <= a.captured, "%d were refunded of payment %s, of which %d were captured", a.refunds, reference, a.captured)
		if a.voided == 0 {
			s.Check(live[a.order] == "", "order %s has two live charges, %s and %s", a.order, live[a.order], reference)
			live[a.order] = reference
		}
	}
	const charged = "SELECT count(*) FROM payments WHERE state IN ('authorized', 'captured')"
	there := 0
	for reference, a := range all {
		s.checkBook(reference, a)
		there += s.Count(charged+" AND reference = $1", reference)
	}
	s.Check(there == s.Count(charged), "%d payments are charged by our books, %d of them by the provider's", s.Count(charged), there)
	s.noteLedger(ledger)
}

// noteLedger notes what a ledger shows, after it was compared with our rows: of a scenario in parts, each time what has come to it.
func (s *Stage) noteLedger(ledger []simulator.Effect) {
	if s.noted > 0 && len(ledger) == s.noted {
		return
	}
	counts := map[string]int{}
	for _, e := range ledger[s.noted:] {
		counts[e.Kind]++
	}
	s.noted = len(ledger)
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[kind], kind))
	}
	if parts == nil {
		parts = []string{"nothing"}
	}
	s.Notef("in the ledger, and our rows say so: %s", strings.Join(parts, ", "))
}

// checkOnce ends the scenario if an effect happened twice under one key.
func (s *Stage) checkOnce(ledger []simulator.Effect) {
	times := map[[2]string]int{}
	for _, e := range ledger {
		of := [2]string{e.Kind, e.EffectKey}
		times[of]++
		s.Check(s.impossible || times[of] == 1, "the %s has %d effects of kind %s under the key %s", s.world.target, times[of], e.Kind, e.EffectKey)
	}
}

// accounts sums a ledger up by payment.
func accounts(ledger []simulator.Effect) map[string]*account {
	all := map[string]*account{}
	of := func(reference string) *account {
		if all[reference] == nil {
			all[reference] = &account{}
		}
		return all[reference]
	}
	for _, e := range ledger {
		switch e.Kind {
		case authorized:
			a := of(e.Reference)
			a.order = e.Account + "/" + e.OrderID
			a.authorized += e.AmountMinor
		case captured:
			a := of(e.Parent)
			a.captured += e.AmountMinor
			a.captures++
		case voided:
			of(e.Parent).voided += e.AmountMinor
		case refunded:
			of(e.Parent).refunds += e.AmountMinor
		}
	}
	return all
}

// checkBook compares what our database says of a payment, once nothing about it is open any more, with what the provider's ledger says.
func (s *Stage) checkBook(reference string, a *account) {
	if s.Count(`SELECT count(*) FROM payments p JOIN effects e ON e.account_id = p.account_id
		WHERE p.reference = $1 AND e.state NOT IN ('succeeded', 'failed', 'canceled')
		AND (e.operation_id IN (p.operation_id, p.open_operation_id) OR e.operation_id IN (SELECT r.operation_id FROM refunds r WHERE r.account_id = p.account_id AND r.payment_id = p.id))`, reference) > 0 {
		return // a person has to say
	}
	if s.Count(`SELECT count(*) FROM reviews v JOIN payments p ON p.account_id = v.account_id WHERE p.reference = $1 AND v.kind = 'contradiction' AND v.state = 'open'
		AND (v.operation_id = p.operation_id OR v.operation_id IN (SELECT r.operation_id FROM refunds r WHERE r.account_id = p.account_id AND r.payment_id = p.id))`, reference) > 0 {
		return // a person has erred, and is asked what to do about it
	}
	state := "authorized"
	switch {
	case a.captures > 0:
		state = "captured"
	case a.voided > 0:
		state = "canceled"
	}
	found := s.Count(`SELECT count(*) FROM payments WHERE reference = $1 AND amount_minor = $2 AND captured_minor = $3 AND refunded_minor = $4 AND refund_reserved_minor = 0
		AND (state = $5 OR state = 'failed' AND $5 = 'canceled')`, reference, a.authorized, a.captured, a.refunds, state)
	s.Check(found == 1, "at the provider payment %s is %s with %d authorized, %d captured and %d refunded, and our books do not say so", reference, state, a.authorized, a.captured, a.refunds)
}
