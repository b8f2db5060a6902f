package scenarios

import "strings"

// checkSecrets ends the scenario if a key or a body that a caller has sent stands in what the services have logged, or in
// the exported log. Bearer tokens of the demo are names of principals, which are told; those that the provider is shown are not.
func (s *Stage) checkSecrets() {
	log, err := s.db.Audit(s.ctx, "export")
	s.must(err)
	for name, text := range map[string]string{"the audit log": log, "what the services have logged": s.serviceLogs()} {
		for _, secret := range append(s.secrets, "Bearer ", "demo-provider", hookSecret) {
			at := strings.Index(text, secret)
			s.Check(at < 0, "%s tells %q", name, secret)
		}
	}
}

// serviceLogs is what the services have written, without the outside world's.
func (s *Stage) serviceLogs() string {
	var all strings.Builder
	for _, service := range s.services {
		all.WriteString(service.Log())
	}
	return all.String()
}
