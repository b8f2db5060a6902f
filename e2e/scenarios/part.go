package scenarios

import (
	"fmt"

	"github.com/einmal/einmal/e2e/harness"
	"github.com/einmal/einmal/e2e/record"
)

// Part is the part of a scenario that is played with one ability of the desk.
type Part struct {
	*Stage
	ability
	Pace Pace

	replicas []*harness.Service
	found    int // effects in the ledger when the part began
}

// EachAbility plays a part with each ability in turn, at one desk and on one database, and returns how many effects there must be. In each, something
// must really go wrong.
func (s *Stage) EachAbility(abilities []ability, pace Pace, play func(p *Part) (effects int)) (effects int) {
	desk := s.Desk()
	for _, a := range abilities {
		s.part = a.String()
		record.From(s.ctx).Part(s.part)
		desk.Can(a.can)
		p := &Part{Stage: s, ability: a, Pace: pace, found: len(desk.Ledger())}
		injected, notes, tickets, asked := s.injected(), len(s.notes), len(s.mirrors), s.withPerson()
		happened := play(p)
		s.Check(s.injected() > injected, "no fault happened, so nothing was shown")
		if len(s.notes) == notes {
			s.Notef("%d tickets, %d at the desk, %d with a person", len(s.mirrors)-tickets, happened, s.withPerson()-asked)
		}
		effects += happened
		p.endReplicas() // the next are told of another ability, and must find nothing to do
		s.checkMirrors()
		desk.Disarm()
	}
	s.part = ""
	return effects
}

// withPerson is how many mirrors a person is asked about.
func (s *Stage) withPerson() int {
	if len(s.mirrors) == 0 {
		return 0 // there may be no tables yet
	}
	return s.Count("SELECT count(*) FROM reviews WHERE state = 'open'")
}

// Replica starts a replica of the tickets service that mirrors to the desk at url.
func (p *Part) Replica(url string, settings ...string) *harness.Service {
	service, err := p.lab.Serve(p.ctx, harness.Settings{Role: "tickets", DatabaseURL: p.db.URL, Env: append([]string{
		"EINMAL_PROVIDER_URL=" + url,
		"EINMAL_DESK_ABILITY=" + p.name,
		fmt.Sprintf("EINMAL_PROVIDER_TIMEOUT=%s", p.Pace.Timeout),
		fmt.Sprintf("EINMAL_EFFECT_LEASE=%s", p.Pace.Lease),
		fmt.Sprintf("EINMAL_RECONCILE_EVERY=%s", p.Pace.Reconcile),
		fmt.Sprintf("EINMAL_KEY_WINDOW=%s", p.Pace.KeyWindow),
	}, settings...)})
	p.must(err)
	p.services = append(p.services, service)
	p.replicas = append(p.replicas, service)
	return service
}

// endReplicas lets the replicas of the part leave.
func (p *Part) endReplicas() {
	for _, replica := range p.replicas {
		p.must(replica.Terminate())
	}
	p.replicas = nil
}

// Restart starts a replica that was killed.
func (p *Part) Restart(replica *harness.Service) { p.must(replica.Start(p.ctx)) }
