package deployments_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/einmal/einmal/migrations"
	"github.com/einmal/einmal/pkg/catalogue"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/fsck"
	"github.com/einmal/einmal/pkg/problem"
	"github.com/einmal/einmal/pkg/server"
	"github.com/einmal/einmal/pkg/server/servertest"
	"github.com/einmal/einmal/services/deployments"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// patience is for what happens within a second or two; on a busy machine, within many.
const patience = 25 * time.Second

// running is the service on a database of its own, in front of a simulated cluster.
type running struct {
	*servertest.Server
	db      *database.DB
	cluster cluster
}

// start serves from a fresh database until the test ends.
func start(t *testing.T, kind database.Kind, changes ...func(*deployments.Config)) running {
	t.Helper()
	return startAt(t, kind, startCluster(t, kind, 100*time.Millisecond), changes...)
}

// startAt is start with a cluster that is there.
func startAt(t *testing.T, kind database.Kind, c cluster, changes ...func(*deployments.Config)) running {
	t.Helper()
	db := dbtest.Open(t, kind)
	if err := migrations.Up(t.Context(), db, deployments.Name); err != nil {
		t.Fatal(err)
	}
	return startOn(t, db, c, changes...)
}

func startOn(t *testing.T, db *database.DB, c cluster, changes ...func(*deployments.Config)) running {
	t.Helper()
	config := defaults()
	config.TokensFile, config.Demo = servertest.Tokens(t), true // also for requests that a test writes by hand
	config.ProviderURL = c.URL
	config.ProviderTimeout, config.EffectLease = time.Second, 2*time.Second
	config.ReconcileEvery, config.FollowEvery = 20*time.Millisecond, 10*time.Millisecond
	for _, change := range changes {
		change(&config)
	}
	secrets := servertest.KeepSecrets(t, db.SQL())
	secrets.Keep(config.ProviderToken, "the cluster's token")
	service, err := deployments.New(config, deployments.Deps{DB: db, Log: secrets.Log})
	if err != nil {
		t.Fatal(err)
	}
	return running{servertest.Start(t, service, secrets), db, c}
}

// defaults are the settings of a service that is told nothing, on any port.
func defaults() deployments.Config {
	return deployments.Config{
		Config:      server.Config{Listen: "127.0.0.1:0", ShutdownGrace: 10 * time.Second},
		Settings:    catalogue.Settings{WaitBudget: 2 * time.Second, ResponseRetention: 720 * time.Hour, TombstoneRetention: 9600 * time.Hour, ApprovalTTL: 30 * time.Minute, ApprovalThreshold: 10000, PurgeEvery: time.Minute, EffectDeadline: 24 * time.Hour},
		Cluster:     deployments.Cluster{FollowEvery: 200 * time.Millisecond},
		ProviderURL: "http://127.0.0.1:8090", ProviderToken: "demo-provider", ProviderReadToken: "demo-provider-read", Namespace: "einmal",
		ProviderTimeout: 10 * time.Second, EffectLease: 30 * time.Second, ReconcileEvery: 2 * time.Second, KeyWindow: 24 * time.Hour,
	}
}

// agent is of the account acme; globex is somebody else.
func (r running) agent() servertest.Client    { return r.As("demo-agent") }
func (r running) globex() servertest.Client   { return r.As("demo-globex") }
func (r running) operator() servertest.Client { return r.As("demo-operator") }

// key is the header of a bare key.
func key(format string, args ...any) string {
	return "Idempotency-Key: " + servertest.Key(fmt.Sprintf(format, args...))
}

// wait is the header of a caller that waits for the end.
const wait = "Prefer: wait=25"

// image names an image by a digest that is the digit, many times.
func image(digit string) string { return "registry.example/app@sha256:" + strings.Repeat(digit, 64) }

// command is the body of a deployment of web to prod. Further members stand in more, each with a comma in front.
func command(digit, more string) string {
	return `{"service":"web","environment":"prod","artifact":"` + image(digit) + `"` + more + `}`
}

const (
	queued   = `,"when_locked":"queue"`
	nothing  = "{}"
	nobodyIs = "11111111-1111-7111-8111-111111111111"
)

// deploy sends a deployment as acme's agent would.
func (r running) deploy(t *testing.T, k, body string, headers ...string) servertest.Answer {
	t.Helper()
	return r.agent().Send(t, "POST", "/v1/deployments", body, append(headers, key("%s", k))...)
}

// about sends a write about a deployment.
func (r running) about(t *testing.T, id, what, k, body string, headers ...string) servertest.Answer {
	t.Helper()
	return r.agent().Send(t, "POST", "/v1/deployments/"+id+"/"+what, body, append(headers, key("%s", k))...)
}

// deployment is the status resource as a client reads it.
type deployment struct {
	ID, Kind, Service, Environment, Artifact, State, Reason string
	OperationID                                             string `json:"operation_id"`
	RollbackOf                                              string `json:"rollback_of"`
	QueuePosition                                           int    `json:"queue_position"`
	ExpectedVersion                                         int    `json:"expected_version"`
	FencingToken                                            int    `json:"fencing_token"`
	ReportedArtifact                                        string `json:"reported_artifact"`
	StartedAt                                               string `json:"started_at"`
	FinishedAt                                              string `json:"finished_at"`
}

// operation is the resource as a client reads it.
type operation struct {
	ID, Type, State, Effect, Target, Reference string
	ReviewID                                   string `json:"review_id"`
	ApprovalID                                 string `json:"approval_id"`
	NextAction                                 string `json:"next_action"`
	Resource                                   struct{ ID, Href string }
	Response                                   struct {
		Status int
		Body   json.RawMessage
	}
	Attempts []struct{ Outcome, Error string }
}

// approval is a question to a person as they read it.
type approval struct {
	ID, State, Fingerprint, Reason, Consequence string
	OperationID                                 string    `json:"operation_id"`
	RequestedBy                                 string    `json:"requested_by"`
	DecidedBy                                   string    `json:"decided_by"`
	ExpiresAt                                   time.Time `json:"expires_at"`
	Facts                                       map[string]any
}

// environment is the resource as a client reads it.
type environment struct {
	Name             string
	Version          int
	ApprovalRequired bool `json:"approval_required"`
	Releases         []struct {
		Service, Artifact string
		DeploymentID      string `json:"deployment_id"`
	}
	Lock *struct {
		DeploymentID string `json:"deployment_id"`
		OperationID  string `json:"operation_id"`
		FencingToken int    `json:"fencing_token"`
		Since        string
		Reason       string
	}
	Queue []struct {
		DeploymentID string `json:"deployment_id"`
	}
}

// live is the artifact of web that is live; empty: none.
func (e environment) live() string {
	for _, r := range e.Releases {
		if r.Service == "web" {
			return r.Artifact
		}
	}
	return ""
}

// accepted is the deployment that an answer has accepted.
func (r running) accepted(t *testing.T, a servertest.Answer) deployment {
	t.Helper()
	var op operation
	a.Decode(t, &op)
	if a.Status != 202 || a.Outcome() != "accepted" || !strings.HasPrefix(op.Resource.ID, "dep_") {
		t.Fatalf("got %s, want it accepted", a)
	}
	return r.now(t, op.Resource.ID)
}

// approval reads the question about a deployment.
func (r running) approval(t *testing.T, d deployment) (a approval) {
	t.Helper()
	r.As("demo-approver").Send(t, "GET", "/v1/approvals/"+r.operation(t, d.OperationID).ApprovalID, "").Decode(t, &a)
	return a
}

// decide decides about a deployment that waits for a person.
func (r running) decide(t *testing.T, k string, d deployment, decision string) servertest.Answer {
	t.Helper()
	a := r.approval(t, d)
	return r.As("demo-approver").Send(t, "POST", "/v1/approvals/"+a.ID+"/decision", fmt.Sprintf(`{"decision":%q,"fingerprint":%q}`, decision, a.Fingerprint), key("%s", k))
}

// approved is the deployment that an answer has accepted and that a person has let go.
func (r running) approved(t *testing.T, a servertest.Answer) deployment {
	t.Helper()
	d := r.accepted(t, a)
	if d.State != "awaiting_approval" {
		t.Fatalf("got %+v, want it to wait for a person", d)
	}
	if yes := r.decide(t, "yes-"+d.ID, d, "approve"); yes.Status != 200 {
		t.Fatalf("%s", yes)
	}
	return d
}

// succeeds deploys and waits until that is live.
func (r running) succeeds(t *testing.T, k, body string) (d deployment) {
	t.Helper()
	a := r.deploy(t, k, body, wait)
	if a.Status != 201 {
		t.Fatalf("%s: got %s, want it live", k, a)
	}
	a.Decode(t, &d)
	return d
}

// now reads a deployment.
func (r running) now(t *testing.T, id string) (d deployment) {
	t.Helper()
	r.agent().Send(t, "GET", "/v1/deployments/"+id, "").Decode(t, &d)
	return d
}

func (r running) operation(t *testing.T, id string, headers ...string) (op operation) {
	t.Helper()
	r.agent().Send(t, "GET", "/v1/operations/"+id, "", headers...).Decode(t, &op)
	return op
}

// prod reads acme's environment prod.
func (r running) prod(t *testing.T) (e environment) {
	t.Helper()
	r.agent().Send(t, "GET", "/v1/environments/prod", "").Decode(t, &e)
	return e
}

// becomes waits until a deployment is as it must be.
func (r running) becomes(t *testing.T, id, what string, holds func(deployment) bool) (d deployment) {
	t.Helper()
	await(t, "the deployment "+what, func() bool { d = r.now(t, id); return holds(d) })
	return d
}

// is waits until a deployment is in a state.
func (r running) is(t *testing.T, id, state string) deployment {
	t.Helper()
	return r.becomes(t, id, "is "+state, func(d deployment) bool { return d.State == state })
}

// withPerson waits until a person is asked about a deployment.
func (r running) withPerson(t *testing.T, d deployment) (op operation) {
	t.Helper()
	await(t, "a person is asked", func() bool { op = r.operation(t, d.OperationID); return op.ReviewID != "" })
	return op
}

func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(patience)
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("waited in vain until %s", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// expect holds an answer to a problem.
func expect(t *testing.T, a servertest.Answer, status int, code problem.Code) problem.Problem {
	t.Helper()
	p := a.Problem(t)
	if a.Status != status || p.Code != code {
		t.Errorf("got %s, want %d %s", a, status, code)
	}
	return p
}

// healthy holds the database and the cluster to what must be true after everything.
func (r running) healthy(t *testing.T) {
	t.Helper()
	violations, err := fsck.Run(context.Background(), r.db, deployments.Checks()...)
	if err != nil || len(violations) > 0 {
		t.Errorf("the database: %+v, %v", violations, err)
	}
	r.cluster.oneAtATime()
}
