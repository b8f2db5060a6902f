package scenarios

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/einmal/einmal/e2e/harness"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/services/simulator"
)

var dispute = Scenario{
	Name:    "dispute",
	Promise: "After a dispute the receipt alone proves which run, which key, which fingerprint and which result downstream, to whoever has the public key.",
	Injects: true,
	run: func(s *Stage) int {
		t := s.Till(brisk)
		replica := t.Replica("EINMAL_SEAL_EVERY=50ms")
		const run = "run-2026-12-01-night"
		a := t.Pays(t.NewOrder(replica))
		t.psp.Next(confirm, simulator.After, simulator.Hang) // so that what happened is only found out
		t.Accepted(a, t.Do(harness.Call{Base: replica.URL(), Method: http.MethodPost, Path: a.Path, Key: a.Key, Body: a.Body, Header: http.Header{"Agent-Run-Id": {run}}}))
		t.psp.AwaitFired(1)
		t.Succeeds(replica, a)

		// What has simply happened is told by its end alone.
		plain := t.Done(replica, t.Pays(t.NewOrder(replica)))
		simple := t.Do(harness.Call{Base: replica.URL(), Method: http.MethodGet, Path: "/v1/operations/" + plain.Operation + "/receipt", Token: "demo-operator"})
		happened := t.psp.Effect(authorized, plain.EffectKey)[0].Reference

		// Whoever disputes it is not who did it, so an auditor asks.
		answer := t.Do(harness.Call{Base: replica.URL(), Method: http.MethodGet, Path: "/v1/operations/" + a.Operation + "/receipt", Token: "demo-operator"})
		t.Check(answer.Status == http.StatusOK, "the receipt: got %v", answer)
		other := t.Do(harness.Call{Base: replica.URL(), Method: http.MethodGet, Path: "/v1/operations/" + a.Operation + "/receipt", Token: "demo-globex-operator"})
		t.Problem("another account's auditor", other, http.StatusNotFound, "not-found")
		fingerprint := t.Do(harness.Call{Base: replica.URL(), Method: http.MethodPost, Path: "/v1/fingerprints", Body: encode(map[string]any{
			"method": http.MethodPost, "path": a.Path, "body": json.RawMessage(a.Body),
		})}).Text("fingerprint")
		reference := t.psp.Effect(authorized, a.EffectKey)[0].Reference
		t.must(replica.Terminate())

		file, keys := filepath.Join(t.db.AuditDir(), "receipt.json"), filepath.Join(t.db.AuditDir(), "audit.pub")
		t.must(os.WriteFile(file, answer.Body, 0o600))
		proven, err := t.lab.Run(t.ctx, "audit", "receipt", file, "--keys", keys)
		t.must(err)
		log, err := t.db.Audit(t.ctx, "export")
		t.must(err)
		for what, told := range map[string]string{
			"which run": run, "which key": idempotency.Key(a.Key).Hash(), "which fingerprint": fingerprint, "which effect": a.EffectKey, "which result downstream": reference,
		} {
			t.Check(told != "" && strings.Contains(proven, told), "the receipt does not tell %s, %q:\n%s", what, told, proven)
			t.Check(strings.Contains(log, told), "the log does not tell %s, %q", what, told)
		}
		t.must(os.WriteFile(file, simple.Body, 0o600))
		proven, err = t.lab.Run(t.ctx, "audit", "receipt", file, "--keys", keys)
		t.Check(err == nil && strings.Contains(proven, "became succeeded") && strings.Contains(proven, happened), "the receipt of what has simply happened does not tell %q:\n%s", happened, proven)
		forged := strings.Replace(string(answer.Body), run, "run-of-somebody-else", 1)
		t.must(os.WriteFile(file, []byte(forged), 0o600))
		out, err := t.lab.Run(t.ctx, "audit", "receipt", file, "--keys", keys)
		t.Check(err != nil && strings.Contains(out, "proves nothing"), "a receipt that names another run is taken: %s", out)
		t.Notef("run, key, fingerprint and reference are proven by %d bytes", len(answer.Body))
		return 2
	},
}
