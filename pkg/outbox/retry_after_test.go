package outbox_test

import (
	"testing"
	"time"

	"github.com/einmal/einmal/pkg/outbox"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "0": 0, "7": 7 * time.Second, "-1": 0, "1.5": 0, "soon": 0, "7 ": 0,
		"Sun, 01 Mar 2026 12:00:30 GMT": 30 * time.Second,
		"Sun, 01 Mar 2026 11:59:00 GMT": 0,
		"Sun, 01 Mar 2099 12:00:00 GMT": time.Hour,
		"99999999999":                   time.Hour,
		"99999999999999999999":          time.Hour,
	} {
		if got := outbox.RetryAfter(value, now); got != want {
			t.Errorf("%q: %s, want %s", value, got, want)
		}
	}
}
