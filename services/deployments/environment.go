package deployments

import (
	"time"

	"github.com/einmal/einmal/pkg/idempotency/idemhttp"
)

// firstVersion is that of an environment in which nothing has happened.
const firstVersion = 1

// Environment is where releases run, one rollout at a time.
type Environment struct {
	AccountID        string
	Name             string
	Position         string // in lists
	ApprovalRequired bool
	Version          int64
	Arrivals         int64      // deployments that have come
	Holder           string     // of the lock, a deployment; empty: it is free
	HeldSince        *time.Time // nil: it is free
	Token            int64      // the last that was drawn, or learned
	Floor            int64      // that the cluster has confirmed
	CreatedAt        time.Time
	UpdatedAt        time.Time

	// What is read for the resource alone.
	Releases []Release
	Holding  *Deployment // nil: nobody
	Queue    []Deployment
}

// Release is what is live of a service.
type Release struct {
	Service      string
	Artifact     string
	DeploymentID string
	Since        time.Time
}

// locked reports whether a deployment holds the environment. Where nobody does nobody waits either: whoever leaves the lock gives it on.
func (e Environment) locked() bool { return e.Holder != "" }

// environmentHref is where an environment is found.
func environmentHref(name string) string { return "/v1/environments/" + name }

// environmentResource is an environment as clients see it.
type environmentResource struct {
	Name             string            `json:"name"`
	Version          int64             `json:"version"`
	ApprovalRequired bool              `json:"approval_required"`
	Releases         []releaseResource `json:"releases"`
	Lock             *lockResource     `json:"lock,omitzero"`
	Queue            []queuedResource  `json:"queue"`
}

type releaseResource struct {
	Service      string        `json:"service"`
	Artifact     string        `json:"artifact"`
	DeploymentID string        `json:"deployment_id"`
	Since        idemhttp.Time `json:"since"`
}

type lockResource struct {
	DeploymentID string        `json:"deployment_id"`
	OperationID  string        `json:"operation_id"`
	FencingToken int64         `json:"fencing_token"` // 0: nothing was sent yet
	Since        idemhttp.Time `json:"since"`
	Reason       string        `json:"reason"`
}

type queuedResource struct {
	DeploymentID string        `json:"deployment_id"`
	Since        idemhttp.Time `json:"since"`
}

func (e Environment) resource() environmentResource {
	r := environmentResource{
		Name: e.Name, Version: e.Version, ApprovalRequired: e.ApprovalRequired, Releases: []releaseResource{}, Queue: []queuedResource{},
	}
	for _, live := range e.Releases {
		r.Releases = append(r.Releases, releaseResource{live.Service, live.Artifact, live.DeploymentID, idemhttp.Time(live.Since)})
	}
	for _, d := range e.Queue {
		r.Queue = append(r.Queue, queuedResource{d.ID, idemhttp.Time(d.CreatedAt)})
	}
	if d := e.Holding; d != nil && e.HeldSince != nil {
		r.Lock = &lockResource{
			DeploymentID: d.ID, OperationID: d.OperationID, FencingToken: d.FencingToken, Since: idemhttp.Time(*e.HeldSince),
			Reason: string(d.Kind) + " of " + d.Service + " is " + string(d.State),
		}
	}
	return r
}
