package deployments

import (
	"time"

	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/idempotency/idemhttp"
)

// Deployment is a release on its way to an environment, or what has become of it.
type Deployment struct {
	AccountID        string
	ID               string // dep_…
	OperationID      string // the operation that brings it there
	Kind             Kind
	RollbackOf       string // the deployment that it takes back; empty: none
	Service          string
	Environment      string
	Artifact         string            // named for good
	State            idempotency.State // of its effect
	Reason           string            // why it has not succeeded
	ExpectedVersion  *int64            // of the environment; nil: any
	Arrival          int64             // the order of deployments in an environment
	Queues           bool              // where it finds the environment locked when a person has said yes
	Waiting          bool              // for the lock
	Asked            bool              // a person was, before it went out
	QueuePosition    int64             // from 1 on while it waits
	FencingToken     int64             // the highest that was drawn for it; 0: it was never sent
	StopOperationID  string            // the operation that breaks it off; empty: none
	ReportedArtifact string            // what the cluster said runs, when it was last asked about the end
	Replaced         string            // the deployment that was live before it
	CreatedAt        time.Time
	StartedAt        *time.Time // when it was first sent
	FinishedAt       *time.Time
}

// Kind says what a deployment is for.
type Kind string

const (
	Deploy   Kind = "deploy"
	Rollback Kind = "rollback"
)

// newDeployment is a deployment at its beginning.
func newDeployment(op idempotency.Operation, service string, env Environment, artifact string, now time.Time) Deployment {
	return Deployment{
		AccountID: op.AccountID, ID: idempotency.NewID("dep", now), OperationID: op.ID, Kind: Deploy, Service: service, Environment: env.Name,
		Artifact: artifact, State: idempotency.Queued, Arrival: env.Arrivals, CreatedAt: now,
	}
}

// fits reports whether an environment is at the version that the deployment was planned for.
func (d Deployment) fits(env Environment) bool {
	return d.ExpectedVersion == nil || *d.ExpectedVersion == env.Version
}

// mayEnter reports whether the deployment fits when its turn comes, and nobody has to be asked about it who was not: the environment may
// be protected since it waits.
func (d Deployment) mayEnter(env Environment) bool {
	return d.fits(env) && (d.Asked || !env.ApprovalRequired)
}

// href is where a deployment is found.
func href(id string) string { return "/v1/deployments/" + id }

// about names a deployment as what an operation has made or changed.
func about(id string) idempotency.Resource {
	return idempotency.Resource{Type: "deployment", ID: id, Href: href(id)}
}

// deploymentResource is a deployment as clients see it.
type deploymentResource struct {
	ID               string            `json:"id"`
	OperationID      string            `json:"operation_id"`
	Kind             Kind              `json:"kind"`
	RollbackOf       string            `json:"rollback_of,omitzero"`
	Service          string            `json:"service"`
	Environment      string            `json:"environment"`
	Artifact         string            `json:"artifact"`
	State            idempotency.State `json:"state"`
	Reason           string            `json:"reason,omitzero"`
	QueuePosition    int64             `json:"queue_position,omitzero"`
	ExpectedVersion  *int64            `json:"expected_version,omitzero"`
	FencingToken     int64             `json:"fencing_token,omitzero"`
	ReportedArtifact string            `json:"reported_artifact,omitzero"`
	CreatedAt        idemhttp.Time     `json:"created_at"`
	StartedAt        *idemhttp.Time    `json:"started_at,omitzero"`
	FinishedAt       *idemhttp.Time    `json:"finished_at,omitzero"`
}

func (d Deployment) resource() deploymentResource {
	return deploymentResource{
		ID: d.ID, OperationID: d.OperationID, Kind: d.Kind, RollbackOf: d.RollbackOf, Service: d.Service, Environment: d.Environment,
		Artifact: d.Artifact, State: d.State, Reason: d.Reason, QueuePosition: d.QueuePosition, ExpectedVersion: d.ExpectedVersion,
		FencingToken: d.FencingToken, ReportedArtifact: d.ReportedArtifact,
		CreatedAt: idemhttp.Time(d.CreatedAt), StartedAt: (*idemhttp.Time)(d.StartedAt), FinishedAt: (*idemhttp.Time)(d.FinishedAt),
	}
}
