package scenarios

import "net/http"

var mutableReferencesRefused = Scenario{
	Name:    "mutable_references_refused",
	Promise: "What can point to something else tomorrow is deployed by nobody: not a branch, not a tag, not half a digest.",
	run: func(s *Stage) int {
		y := s.Yard(patient, usual)
		replica := y.Replica()
		digest, commit := y.hex(64), y.hex(40)
		refused := map[string][]string{
			"mutable-reference": {
				"web", "web:latest", "web:v118", "main", "refs/heads/main", "git+https://git.example/web@main", "git+https://git.example/web@v118", "git+https://git.example/web",
			},
			"invalid-digest": {
				"web@sha256:" + digest[1:], "web@sha256:" + digest + "0", "web@sha256:" + "G" + digest[1:], "web@md5:" + digest[:32], "web@" + digest, "sha256:" + digest,
				"git+https://git.example/web@" + commit[:7], "git+https://git.example/web@" + commit + "0",
			},
			"validation-failed": {"", "web@sha256:" + digest + "\n", "Web@sha256:" + digest, "git+http://git.example/web@" + commit},
		}
		n := 0
		for code, artifacts := range refused {
			for _, artifact := range artifacts {
				r := y.Plans(func(p *plan) { p.Artifact = artifact })
				y.Problem(artifact, y.Ask(replica, r), http.StatusUnprocessableEntity, code)
				n++
			}
		}
		y.Check(y.Count("SELECT count(*) FROM operations") == 0, "a refused deployment has become an operation")
		y.Notef("%d artifacts refused", n)
		return 0
	},
}
