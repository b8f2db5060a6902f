package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/database"
)

func TestRun(t *testing.T) {
	t.Run("measures every variant, finds nothing wrong and writes it down", func(t *testing.T) {
		out := filepath.Join(t.TempDir(), "results.json")
		err := run(t.Context(), []string{"-databases", "sqlite", "-connections", "2", "-rounds", "2", "-duration", "20ms", "-effects", "16", "-out", out})
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		var got report
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if len(got.Results) != len(variants) {
			t.Fatalf("%d results, want one for each of %d variants", len(got.Results), len(variants))
		}
		for _, r := range got.Results {
			if r.PerSecond.Min <= 0 || r.Ratio.Median <= 0 || r.CPURatio.Median <= 0 || r.Allocs.Median <= 0 {
				t.Errorf("%s: %+v", r.Variant, r)
			}
		}
		if len(got.Drains) != 1 || got.Drains[0].PerSecond.Min <= 0 || got.Drains[0].P50.Min <= 0 || got.Drains[0].Heap.Min <= 0 {
			t.Errorf("drain: %+v", got.Drains)
		}
	})
	t.Run("refuses a variant that there is not", func(t *testing.T) {
		if err := run(t.Context(), []string{"-variants", "bare,faster"}); err == nil {
			t.Fatal("no error")
		}
	})
}

func TestMeasure(t *testing.T) {
	create := variants[1]
	for _, test := range []struct {
		name string
		lie  func(v *variant)
	}{
		{"fails when an answer is not the expected one", func(v *variant) { v.outcome = "replayed" }},
		{"fails when the rows are not what was answered", func(v *variant) { v.leaves.Tickets = 2 }},
	} {
		t.Run(test.name, func(t *testing.T) {
			storage, err := newStorage(t.Context(), database.SQLite, false)
			if err != nil {
				t.Fatal(err)
			}
			defer storage.remove()
			target, err := startTickets(t.Context(), storage.ticketsURL)
			if err != nil {
				t.Fatal(err)
			}
			defer target.close()

			if _, err := measure(t.Context(), create, target, 1, time.Millisecond); err != nil {
				t.Fatalf("the truth: %v", err)
			}
			lie := create
			test.lie(&lie)
			if _, err := measure(t.Context(), lie, target, 1, time.Millisecond); err == nil {
				t.Fatal("no error")
			}
		})
	}
}

func TestSpreadOf(t *testing.T) {
	for _, test := range []struct {
		name   string
		values []float64
		want   spread
	}{
		{"of an odd number is the one in the middle", []float64{3, 1, 2}, spread{2, 1, 3}},
		{"of an even number is between the two in the middle", []float64{4, 1, 2, 3}, spread{2.5, 1, 4}},
		{"of one is that one", []float64{7}, spread{7, 7, 7}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, spreadOf(test.values)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
