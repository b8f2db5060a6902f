package simulator_test

import (
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/services/simulator"
)

func TestRestart(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		w := start(t, kind)
		w.abilities(`{"target":"desk","keys":"honour","key_window_ms":60000,"lookup":true,"lag_ms":1,"close":true}`)
		sent := w.send("sent")
		refused := w.sendBody("refused", `{"title":"t","project":"refused"}`)
		w.close("closed")
		w.arm(`{"target":"desk","operation":"send","when":"before","action":"status","status":503,"times":2}`)
		check(t, w.send("x"), 503, "error")
		ledger, calls, abilities := w.ledger(), w.calls(), read[simulator.Abilities](w, "/_abilities")

		w.restart()
		if diff := cmp.Diff(ledger, w.ledger()); diff != "" {
			t.Errorf("ledger: %s", diff)
		}
		if diff := cmp.Diff(calls, w.calls()); diff != "" {
			t.Errorf("calls: %s", diff)
		}
		if diff := cmp.Diff(abilities, read[simulator.Abilities](w, "/_abilities")); diff != "" {
			t.Errorf("abilities: %s", diff)
		}
		check(t, w.send("x"), 503, "error")
		if diff := cmp.Diff([]int64{2}, w.fired()); diff != "" {
			t.Errorf("fired: %s", diff)
		}
		if a := w.send("sent"); a.body != sent.body || !a.replayed() {
			t.Errorf("the key of a send: %v", a)
		}
		if a := w.sendBody("refused", `{"title":"t","project":"refused"}`); a.body != refused.body || !a.replayed() {
			t.Errorf("the key of a refusal: %v", a)
		}
		check(t, w.send("closed"), 409, "closed")
		w.checkEffects(1)
	})
}

func TestHealth(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		w := start(t, kind)
		for _, path := range []string{"/healthz", "/readyz"} {
			if a := w.do(t.Context(), "", "GET", path, ""); a.status != 200 {
				t.Errorf("%s: %v", path, a)
			}
		}
		check(t, w.do(t.Context(), writeToken, "GET", "/desk/v1/nothing", ""), 404, "not_found")
		check(t, w.do(t.Context(), writeToken, "PUT", "/desk/v1/tickets", "{}"), 404, "not_found")
		for _, list := range []string{"/_ledger", "/_calls", "/_faults", "/_abilities"} {
			check(t, w.do(t.Context(), "", "GET", list+"?target=moon", ""), 400, "invalid")
		}
	})
}

func TestAWrongSettingIsNamed(t *testing.T) {
	right := simulator.Config{Listen: "127.0.0.1:0", Token: "w", ReadToken: "r"}
	for name, spoil := range map[string]func(*simulator.Config){
		"EINMAL_LISTEN":             func(c *simulator.Config) { c.Listen = "8090" },
		"EINMAL_PROVIDER_TOKEN":     func(c *simulator.Config) { c.Token = "" },
		"EINMAL_PSP_WEBHOOK_URL":    func(c *simulator.Config) { c.PSPWebhookURL, c.PSPWebhookSecret = "127.0.0.1", "s" },
		"EINMAL_PSP_WEBHOOK_SECRET": func(c *simulator.Config) { c.PSPWebhookURL = "http://127.0.0.1" },
		"EINMAL_SHUTDOWN_GRACE":     func(c *simulator.Config) { c.ShutdownGrace = -1 },
		"EINMAL_ROLLOUT_TIME":       func(c *simulator.Config) { c.RolloutTime = -1 },
	} {
		config := right
		spoil(&config)
		if _, err := simulator.New(config, simulator.Deps{Log: config.Logger(io.Discard)}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
