package scenarios

// New makes a scenario for tests of Play.
func New(injects bool, run func(s *Stage) (effects int)) Scenario {
	return Scenario{Name: "made_for_a_test", Injects: injects, run: run}
}

// DatabasePath is the file of the stage's database.
func (s *Stage) DatabasePath() string { return s.db.Path }
