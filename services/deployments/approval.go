package deployments

import (
	"fmt"

	"github.com/einmal/einmal/pkg/approval"
)

// facts are what exactly will happen, for whoever is asked about a deployment.
type facts struct {
	Kind             Kind   `json:"kind"`
	Environment      string `json:"environment"`
	Service          string `json:"service"`
	Artifact         string `json:"artifact"`
	CurrentRelease   string `json:"current_release,omitzero"` // the artifact that is live; absent: none is
	RollbackPossible bool   `json:"rollback_possible"`        // to that one
	RollbackOf       string `json:"rollback_of,omitzero"`
	Deployment       string `json:"deployment"`
}

// askToDeploy asks whether a deployment may be brought out, where this is live of its service (zero: nothing).
func askToDeploy(d Deployment, live Release) approval.Question {
	consequence := fmt.Sprintf("%s runs in %s as %s, where nothing of it has run before.", d.Service, d.Environment, d.Artifact)
	switch {
	case d.Kind == Rollback:
		consequence = fmt.Sprintf("%s in %s goes back from %s to %s.", d.Service, d.Environment, live.Artifact, d.Artifact)
	case live.Artifact != "":
		consequence = fmt.Sprintf("%s in %s goes from %s to %s.", d.Service, d.Environment, live.Artifact, d.Artifact)
	}
	return approval.Question{
		Facts: facts{
			Kind: d.Kind, Environment: d.Environment, Service: d.Service, Artifact: d.Artifact, CurrentRelease: live.Artifact,
			RollbackPossible: live.Artifact != "", RollbackOf: d.RollbackOf, Deployment: d.ID,
		},
		Consequence: consequence,
	}
}
