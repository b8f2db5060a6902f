package scenarios

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/einmal/einmal/e2e/harness"
)

// Release is one operation on an environment: an artifact is brought out, taken back, or broken off.
type Release struct {
	Path      string // what was sent
	Key       string
	Body      string
	Artifact  string
	Operation string
	ID        string // the deployment
	EffectKey string
}

// plan is the command of POST /v1/deployments.
type plan struct {
	Service         string `json:"service"`
	Environment     string `json:"environment"`
	Artifact        string `json:"artifact"`
	ExpectedVersion int    `json:"expected_version,omitempty"`
	WhenLocked      string `json:"when_locked,omitempty"`
}

// Plans is a release of web to prod that is still to be sent, of an artifact that no other has. Changes are made to what it says.
func (y *Yard) Plans(changes ...func(*plan)) *Release {
	p := plan{Service: "web", Environment: "prod", Artifact: "web@sha256:" + y.hex(64)}
	for _, change := range changes {
		change(&p)
	}
	return &Release{Path: "/v1/deployments", Key: y.NewKey(), Body: encode(p), Artifact: p.Artifact}
}

// hex is a text of hexadecimal digits.
func (y *Yard) hex(n int) string {
	digits := make([]byte, n)
	for i := range digits {
		digits[i] = "0123456789abcdef"[y.rand.IntN(16)]
	}
	return string(digits)
}

// queued lets a plan wait for its environment.
func queued(p *plan) { p.WhenLocked = "queue" }

// protected brings a plan to an environment for which a person has to say yes.
func protected(p *plan) { p.Environment = "production" }

// expecting lets a plan hold only for a version of its environment.
func expecting(version int) func(*plan) { return func(p *plan) { p.ExpectedVersion = version } }

// RollsBack is the release that takes another back, still to be sent. to is a deployment, or empty.
func (y *Yard) RollsBack(r *Release, to string) *Release {
	body := "{}"
	if to != "" {
		body = encode(map[string]string{"to": to})
	}
	return &Release{Path: "/v1/deployments/" + r.ID + "/rollback", Key: y.NewKey(), Body: body}
}

// BreaksOff cancels a release.
func (y *Yard) BreaksOff(r *Release) *Release {
	return &Release{Path: "/v1/deployments/" + r.ID + "/cancel", Key: y.NewKey(), Body: "{}", ID: r.ID}
}

// Ask sends the release once, and returns the answer.
func (y *Yard) Ask(replica *harness.Service, r *Release) harness.Answer {
	return y.Do(harness.Call{Base: replica.URL(), Method: http.MethodPost, Path: r.Path, Key: r.Key, Body: r.Body})
}

// Begin sends the release, which must be accepted.
func (y *Yard) Begin(replica *harness.Service, r *Release) *Release {
	y.Accepted(r, y.Ask(replica, r))
	return r
}

// Accepted ends the scenario unless the answer accepts the release.
func (y *Yard) Accepted(r *Release, answer harness.Answer) {
	y.Check(answer.Err == nil && answer.Status == http.StatusAccepted && answer.Outcome() == "accepted", "%s: got %v, want 202 accepted", r.Path, answer)
	r.Operation = answer.Header.Get("Operation-Id")
	r.ID = y.Text("SELECT resource_id FROM operations WHERE id = $1", r.Operation)
	r.EffectKey = y.Text("SELECT effect_key FROM effects WHERE operation_id = $1", r.Operation)
}

// Status asks for the status of the release's deployment.
func (y *Yard) Status(replica *harness.Service, r *Release) harness.Answer {
	return y.Do(harness.Call{Base: replica.URL(), Method: http.MethodGet, Path: "/v1/deployments/" + r.ID})
}

// Is waits until the release's deployment is in a state, and returns its status.
func (y *Yard) Is(replica *harness.Service, r *Release, state string) (status harness.Answer) {
	y.Await(fmt.Sprintf("deployment %s is %s", r.ID, state), func() bool {
		status = y.Status(replica, r)
		y.Check(!ended(status) || status.Text("state") == state, "the deployment has become %v, want it %s", status, state)
		return status.Text("state") == state
	})
	return status
}

func ended(status harness.Answer) bool {
	return status.Text("state") == "succeeded" || status.Text("state") == "failed" || status.Text("state") == "canceled"
}

// Succeeds waits until the release is live, and ends the scenario unless the cluster has rolled exactly it out, once.
func (y *Yard) Succeeds(replica *harness.Service, r *Release) {
	status := y.Is(replica, r, "succeeded")
	found := y.cluster.Effects(r.EffectKey)
	y.Check(len(found) == 1 && "web@"+found[0].Digest == status.Text("artifact"), "the cluster has %v, want one rollout of %s", found, status.Text("artifact"))
	y.Check(status.Text("reported_artifact") == status.Text("artifact"), "the deployment is %v, want it to run what was asked for", status)
	again := y.Ask(replica, r)
	y.Check(again.Status == http.StatusCreated && again.Outcome() == "replayed" && again.Text("id") == r.ID, "sent again: got %v, want the replay of 201", again)
}

// Done begins the release, lets a person say yes if they are asked, and waits until it is live.
func (y *Yard) Done(replica *harness.Service, r *Release) *Release {
	if y.Begin(replica, r); y.Status(replica, r).Text("state") == "awaiting_approval" {
		y.Approve(replica, r.Operation)
	}
	y.Succeeds(replica, r)
	return r
}

// Settled waits until the release's operation is final, and returns it.
func (y *Yard) Settled(replica *harness.Service, r *Release) (op harness.Answer) {
	y.Await("the operation of "+r.Path+" is final", func() bool {
		op = y.Operation(replica, r)
		return ended(op)
	})
	return op
}

// Operation asks for the release's operation.
func (y *Yard) Operation(replica *harness.Service, r *Release) harness.Answer {
	return y.Do(harness.Call{Base: replica.URL(), Method: http.MethodGet, Path: "/v1/operations/" + r.Operation})
}

// WithPerson waits until a person is asked about the release, and returns its review.
func (y *Yard) WithPerson(replica *harness.Service, r *Release) (review string) {
	y.Await("a person is asked", func() bool {
		op := y.Operation(replica, r)
		if review = op.Text("review_id"); review == "" && op.Text("state") == "unknown" { // by itself it would be asked about at growing intervals
			y.Reconcile(replica, r)
		}
		return review != ""
	})
	return review
}

// Reconcile asks for the cluster to be asked now.
func (y *Yard) Reconcile(replica *harness.Service, r *Release) {
	y.Do(harness.Call{Base: replica.URL(), Method: http.MethodPost, Path: "/v1/operations/" + r.Operation + "/reconcile", Key: y.NewKey(), Body: "{}"})
}

// Resolve is a person's word about a release.
func (y *Yard) Resolve(replica *harness.Service, review, state string) harness.Answer {
	return y.Do(harness.Call{
		Base: replica.URL(), Method: http.MethodPost, Path: "/v1/reviews/" + review + "/resolution", Token: operator, Key: y.NewKey(),
		Body: encode(map[string]string{"state": state, "evidence": "seen on the cluster's dashboard"}),
	})
}

// Locked ends the scenario unless a release is refused for now because another holds the environment.
func (y *Yard) Locked(replica *harness.Service, r, holder *Release) {
	answer := y.Ask(replica, r)
	y.Problem("another release", answer, http.StatusConflict, "environment-locked")
	var told struct {
		Holder struct {
			DeploymentID string `json:"deployment_id"`
			OperationID  string `json:"operation_id"`
		}
	}
	y.must(json.Unmarshal(answer.Body, &told))
	y.Check(told.Holder.DeploymentID == holder.ID && told.Holder.OperationID == holder.Operation && answer.Text("retry") == "same_key",
		"another release: got %v, want to be told that %s holds the environment", answer, holder.ID)
}

// Prod reads the environment that releases go to unless they say otherwise.
func (y *Yard) Prod(replica *harness.Service) environment { return y.Environment(replica, "prod") }

// Environment reads one.
func (y *Yard) Environment(replica *harness.Service, name string) (env environment) {
	answer := y.Do(harness.Call{Base: replica.URL(), Method: http.MethodGet, Path: "/v1/environments/" + name})
	y.must(json.Unmarshal(answer.Body, &env))
	return env
}

// environment is the resource.
type environment struct {
	Version  int
	Releases []struct{ Artifact string }
	Lock     *struct {
		DeploymentID string `json:"deployment_id"`
	}
	Queue []struct {
		DeploymentID string `json:"deployment_id"`
	}
}

// Live ends the scenario unless this release is live, and nobody holds the environment.
func (y *Yard) Live(replica *harness.Service, r *Release) {
	env := y.Prod(replica)
	artifact := y.Status(replica, r).Text("artifact")
	y.Check(len(env.Releases) == 1 && env.Releases[0].Artifact == artifact && env.Lock == nil, "prod is %+v, want %s live and no lock", env, artifact)
}

// callFor is a release on its way to another place than a replica: a proxy.
func callFor(base string, r *Release) harness.Call {
	return harness.Call{Base: base, Method: http.MethodPost, Path: r.Path, Key: r.Key, Body: r.Body}
}
