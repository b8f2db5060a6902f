package report_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/e2e/record"
	"github.com/einmal/einmal/e2e/report"
	"github.com/einmal/einmal/services/simulator"
)

// paid is a payment: a send of two calls, the first under a key of its own, and a look-up of two that say no key. Somebody has captured at the
// provider itself, twice.
func paid() record.Recording {
	const payments, psp = "127.0.0.1:1002", "127.0.0.1:1003"
	r := record.Recording{
		Places: []record.Place{{Address: psp, Kind: record.Process, Name: "simulator"}, {Address: payments, Kind: record.Process, Name: "payments"}},
		Marks: []record.Mark{
			{At: at(1), Place: payments, Event: record.Started},
			{At: at(2), Place: payments, Event: record.Ready},
		},
	}
	world := record.World{Address: psp}
	call := func(ms float64, kind, key string) {
		world.Calls = append(world.Calls, simulator.Call{Target: "psp", Kind: kind, EffectKey: key, At: at(ms)})
	}
	happened := func(ms float64, kind, key string) {
		world.Ledger = append(world.Ledger, simulator.Effect{Target: "psp", Kind: kind, EffectKey: key, Reference: "pi_1", At: at(ms)})
	}
	call(11, "create", "k-create")
	call(13, "confirm", effectKey)
	happened(14, "authorize", effectKey)
	call(31, "list", "")
	call(32, "retrieve", "")
	call(41, "create", "k-turned-away")
	call(50, "capture", "")
	happened(51, "capture", "")
	happened(52, "capture", "")
	happened(60, "void", effectKey)
	r.Worlds = []record.World{world}
	r.Databases = []record.Database{{Name: "sqlite", Tables: []record.Table{
		{Name: "attempts", Columns: []string{"effect_id", "kind", "started_at", "ended_at", "outcome", "error"}, Total: 3, Rows: [][]any{
			{"eff_1", "send", at(10), at(15), "confirmed", ""},
			{"eff_1", "lookup", at(30), at(34), "confirmed", ""},
			{"eff_2", "send", at(40), at(43), "not_sent", "answered 429"},
		}},
		{Name: "effects", Columns: []string{"id", "effect_key"}, Total: 2, Rows: [][]any{{"eff_1", effectKey}, {"eff_2", "of-the-second"}}},
	}}}
	return r
}

func TestCallsOfAPaymentProviderHaveArrived(t *testing.T) {
	var got []string
	for _, a := range report.Tell(scenario(paid())).Chapters[0].Drawing.Arrows {
		way := "→"
		if a.Lost {
			way = "✗"
		}
		got = append(got, a.From+" "+way+" "+a.To+": "+a.Label.Label)
	}
	want := []string{
		"payments → psp: create · k-create",
		"payments → psp: confirm · d26a87c8…",
		"psp → payments: confirmed",
		"payments → psp: list",
		"payments → psp: retrieve",
		"psp → payments: confirmed",
		"payments → psp: send, answered 429 · of-the-second",
		"payments → psp: create · k-turned-away",
		"payments → psp: capture",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("arrows (-want +got):\n%s", diff)
	}
}

func TestEffectsUnderOneKeyAreCountedByKind(t *testing.T) {
	once := report.Tell(scenario(paid()))
	if once.MostUnderOneKey != 1 {
		t.Errorf("%d under one key: what is authorized and then voided is no second effect, nor is what somebody does without a key", once.MostUnderOneKey)
	}
	r := paid()
	r.Worlds[0].Ledger = append(r.Worlds[0].Ledger, r.Worlds[0].Ledger[0])
	if twice := report.Tell(scenario(r)); twice.MostUnderOneKey != 2 {
		t.Errorf("%d under one key, want the two that are authorized", twice.MostUnderOneKey)
	}
}
