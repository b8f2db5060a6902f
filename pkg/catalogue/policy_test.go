package catalogue_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/catalogue"
)

var update = flag.Bool("update", false, "write the golden files anew")

var settings = catalogue.Settings{
	WaitBudget:         2 * time.Second,
	ResponseRetention:  720 * time.Hour,
	TombstoneRetention: 9600 * time.Hour,
	ApprovalTTL:        30 * time.Minute,
	ApprovalThreshold:  10000,
	EffectDeadline:     24 * time.Hour,
}

// An installation may want less than the catalogue allows, of what has an effect; what it publishes is what it keeps.
func TestEffectDeadline(t *testing.T) {
	hurried := settings
	hurried.EffectDeadline = 2 * time.Minute
	before, now := catalogue.NewPolicy(settings, catalogue.All()).Operations, catalogue.NewPolicy(hurried, catalogue.All()).Operations
	for operation, e := range before {
		want := e.DeadlineSeconds
		if len(e.Effects) > 0 {
			want = 120
		}
		if now[operation].DeadlineSeconds != want {
			t.Errorf("%s: %d s, want %d", operation, now[operation].DeadlineSeconds, want)
		}
		if own, _ := catalogue.Lookup(operation); e.DeadlineSeconds != own.DeadlineSeconds {
			t.Errorf("%s has %d s by default, not its own %d", operation, e.DeadlineSeconds, own.DeadlineSeconds)
		}
	}
	for _, bad := range []time.Duration{0, -time.Second, 1500 * time.Millisecond} {
		hurried.EffectDeadline = bad
		if err := hurried.Validate(); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

// The members of the policy are a promise: clients read their budgets from it.
func TestPolicyDocument(t *testing.T) {
	document, err := json.MarshalIndent(catalogue.NewPolicy(settings, catalogue.Of("tickets")), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/policy.json", append(document, '\n'))
}

func TestPolicyTable(t *testing.T) {
	t.Run("is readable", func(t *testing.T) {
		var b bytes.Buffer
		if err := catalogue.NewPolicy(settings, catalogue.All()).WriteTable(&b); err != nil {
			t.Fatal(err)
		}
		golden(t, "testdata/policy.txt", b.Bytes())
	})

	t.Run("says when it could not be written", func(t *testing.T) {
		if err := catalogue.NewPolicy(settings, catalogue.All()).WriteTable(closed{}); !errors.Is(err, os.ErrClosed) {
			t.Errorf("error %v", err)
		}
	})
}

type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, os.ErrClosed }

func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-file +now; go test -update writes it anew):\n%s", path, diff)
	}
}
