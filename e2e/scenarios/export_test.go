package scenarios

import "encoding/json"

// New makes a scenario for tests of Play.
func New(injects bool, run func(s *Stage) (effects int)) Scenario {
	return Scenario{Name: "made_for_a_test", Injects: injects, run: run}
}

// KeysIgnored is one that ends with two effects under one key, and here does not say that it will.
func KeysIgnored() Scenario {
	scenario := lateRequestKeysIgnored
	scenario.Impossible = false
	return scenario
}

// OneAbility plays a part with a desk that can do nothing.
func (s *Stage) OneAbility(play func(p *Part) int) int {
	return s.EachAbility([]ability{byNone}, brisk, play)
}

// Desk is the desk that the part is played at.
func (p *Part) Desk() *Desk { return p.desk }

// DatabasePath is the file of the stage's database.
func (s *Stage) DatabasePath() string { return s.db.Path }

// Recorded is a scenario that hands over what its Alertmanagers have sent, as JSON.
func Recorded(scenario Scenario, write func(text []byte)) Scenario {
	run := scenario.run
	scenario.run = func(s *Stage) int {
		effects := run(s)
		text, err := json.MarshalIndent(s.monitoring.recording(), "", "  ")
		s.must(err)
		write(append(text, '\n'))
		return effects
	}
	return scenario
}

// BriskTill opens a till that does not wait long.
func (s *Stage) BriskTill() *Till { return s.Till(brisk) }

// Provider is where the till's money is.
func (t *Till) Provider() *PSP { return t.psp }
