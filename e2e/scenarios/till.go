package scenarios

import (
	"fmt"

	"github.com/einmal/einmal/e2e/harness"
	"github.com/einmal/einmal/e2e/record"
	"github.com/einmal/einmal/services/simulator"
)

// Till is what scenarios about payments are played with: replicas of the payments service, and a provider that honours effect keys or
// only says so.
type Till struct {
	*Stage
	Pace Pace
	Keys simulator.Keys

	replicas []*harness.Service
}

// Till opens the till at a provider that honours effect keys.
func (s *Stage) Till(pace Pace) *Till {
	s.PSP()
	s.db.Service = paymentsRole
	return &Till{Stage: s, Pace: pace, Keys: simulator.Honour}
}

// EachKeys plays a part at a provider that honours effect keys and then at one that does not, which only its objects' states, our asking before
// we send again, and our fences then make up for. In each, something must really go wrong.
func (s *Stage) EachKeys(pace Pace, play func(t *Till) (effects int)) (effects int) {
	t := s.Till(pace)
	for _, t.Keys = range []simulator.Keys{simulator.Honour, simulator.Ignore} {
		s.begin(t.Keys)
		s.psp.Can(simulator.Abilities{Keys: t.Keys, Lookup: true, Close: true})
		injected := s.injected()
		effects += play(t)
		s.Check(s.injected() > injected, "no fault happened, so nothing was shown")
		t.endReplicas()
		s.checkBooks()
		s.psp.Disarm()
	}
	s.part = ""
	return effects
}

// begin begins a part that is played at a target which does this with effect keys.
func (s *Stage) begin(keys simulator.Keys) {
	s.part = map[simulator.Keys]string{simulator.Honour: "keys honoured", simulator.Ignore: "keys ignored"}[keys]
	record.From(s.ctx).Part(s.part)
}

// paymentsRole is the argument of the binary.
const paymentsRole = "payments"

// Replica starts a replica of the payments service.
func (t *Till) Replica(settings ...string) *harness.Service {
	service, err := t.lab.Serve(t.ctx, harness.Settings{Role: paymentsRole, DatabaseURL: t.db.URL, Env: append([]string{
		"EINMAL_PROVIDER_URL=" + t.psp.URL() + "/psp",
		"EINMAL_PSP_WEBHOOK_SECRET=" + hookSecret,
		fmt.Sprintf("EINMAL_PROVIDER_TIMEOUT=%s", t.Pace.Timeout),
		fmt.Sprintf("EINMAL_EFFECT_LEASE=%s", t.Pace.Lease),
		fmt.Sprintf("EINMAL_RECONCILE_EVERY=%s", t.Pace.Reconcile),
		fmt.Sprintf("EINMAL_KEY_WINDOW=%s", t.Pace.KeyWindow),
	}, settings...)})
	t.must(err)
	t.services = append(t.services, service)
	t.replicas = append(t.replicas, service)
	return service
}

// endReplicas lets the replicas of the part leave.
func (t *Till) endReplicas() {
	for _, replica := range t.replicas {
		t.must(replica.Terminate())
	}
	t.replicas = nil
}

// Restart starts a replica that was killed.
func (t *Till) Restart(replica *harness.Service) { t.must(replica.Start(t.ctx)) }
