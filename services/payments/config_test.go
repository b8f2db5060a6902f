package payments_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/services/payments"
)

func TestConfig(t *testing.T) {
	db := dbtest.Open(t, database.SQLite)
	for name, change := range map[string]func(*payments.Config){
		"EINMAL_PROVIDER_URL":         func(c *payments.Config) { c.ProviderURL = "127.0.0.1:8090" },
		"EINMAL_PROVIDER_URL \"":      func(c *payments.Config) { c.ProviderURL = "" },
		"with a path at most":         func(c *payments.Config) { c.ProviderURL = "http://127.0.0.1/psp?x=1" },
		"EINMAL_PROVIDER_READ_TOKEN":  func(c *payments.Config) { c.ProviderToken = "sk_test_1" },
		"EINMAL_PSP_PAYMENT_METHOD":   func(c *payments.Config) { c.PaymentMethod = "" },
		"EINMAL_PSP_HOOK_ACCOUNT":     func(c *payments.Config) { c.HookAccount = "" },
		"EINMAL_PSP_UNMATCHED_AFTER":  func(c *payments.Config) { c.UnmatchedAfter = 0 },
		"EINMAL_WAIT_BUDGET":          func(c *payments.Config) { c.WaitBudget = 0 },
		"the lease":                   func(c *payments.Config) { c.EffectLease = c.ProviderTimeout },
		"a key window":                func(c *payments.Config) { c.KeyWindow = c.ProviderTimeout },
		"it needs a time between":     func(c *payments.Config) { c.ReconcileEvery = 0 },
		"EINMAL_LISTEN":               func(c *payments.Config) { c.Listen = "nowhere" },
		"lower EINMAL_WAIT_BUDGET":    func(c *payments.Config) { c.WaitBudget = 60e9 },
		"configure payments: answers": func(c *payments.Config) { c.WaitBudget = 60e9 },
	} {
		config := defaults()
		config.ProviderURL = "http://127.0.0.1:8090"
		change(&config)
		if _, err := payments.New(config, payments.Deps{DB: db, Log: slog.New(slog.DiscardHandler)}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("want it to say %q: %v", name, err)
		}
	}
}

// The simulator has its provider below a path; Stripe has none of its own, and says /v1 in its documents.
func TestProviderURL(t *testing.T) {
	for _, path := range []string{"", "/", "/psp", "/psp/", "/psp/v1", "/psp/v1/"} {
		s := start(t, database.SQLite, func(c *payments.Config) { c.ProviderURL += path })
		s.authorized("o")
		s.psp.has("authorize 1250 EUR")
	}
}
