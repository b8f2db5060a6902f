package tickets_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/einmal/einmal/pkg/catalogue"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/fsck"
	"github.com/einmal/einmal/pkg/problem"
	"github.com/einmal/einmal/pkg/server"
	"github.com/einmal/einmal/pkg/server/servertest"
	"github.com/einmal/einmal/services/tickets"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// running is the service on a database of its own.
type running struct {
	*servertest.Server
	db      *database.DB
	secrets *servertest.Secrets
}

// start serves from a fresh database until the test ends.
func start(t *testing.T, kind database.Kind, changes ...func(*tickets.Config)) running {
	t.Helper()
	return startOn(t, dbtest.Open(t, kind), changes...)
}

func startOn(t *testing.T, db *database.DB, changes ...func(*tickets.Config)) running {
	t.Helper()
	config := defaults()
	config.TokensFile, config.Demo = servertest.Tokens(t), true // also for requests that a test writes by hand
	for _, change := range changes {
		change(&config)
	}
	secrets := servertest.KeepSecrets(t, db.SQL())
	secrets.Keep(config.ProviderToken, "the desk's token")
	service, err := tickets.New(config, tickets.Deps{DB: db, Log: secrets.Log})
	if err != nil {
		t.Fatal(err)
	}
	return running{servertest.Start(t, service, secrets), db, secrets}
}

// defaults are the settings of a service that is told nothing, on any port.
func defaults() tickets.Config {
	return tickets.Config{
		Config:        server.Config{Listen: "127.0.0.1:0", ShutdownGrace: 10 * time.Second},
		Settings:      catalogue.Settings{WaitBudget: 2 * time.Second, ResponseRetention: 720 * time.Hour, TombstoneRetention: 9600 * time.Hour, ApprovalTTL: 30 * time.Minute, ApprovalThreshold: 10000, PurgeEvery: time.Minute, EffectDeadline: 24 * time.Hour},
		ProviderToken: "demo-provider", ProviderReadToken: "demo-provider-read", Namespace: "einmal", DeskAbility: "key",
		ProviderTimeout: 10 * time.Second, EffectLease: 30 * time.Second, ReconcileEvery: 2 * time.Second, KeyWindow: 24 * time.Hour,
		AlertProjectLabel: "project", AlertProject: "alerts",
	}
}

// agent is of the account acme; globex is somebody else.
func (r running) agent() servertest.Client  { return r.As("demo-agent") }
func (r running) globex() servertest.Client { return r.As("demo-globex") }

// key is the header of a bare key.
func key(format string, args ...any) string {
	return "Idempotency-Key: " + servertest.Key(fmt.Sprintf(format, args...))
}

// create sends a creation as acme's agent would, or whoever the client is.
func create(t *testing.T, client servertest.Client, key, body string) servertest.Answer {
	t.Helper()
	return client.Send(t, "POST", "/v1/tickets", body, key)
}

// ticket is the resource as a client reads it.
type ticket struct {
	ID            string            `json:"id"`
	Project       string            `json:"project"`
	Title         string            `json:"title"`
	Description   string            `json:"description"`
	Priority      string            `json:"priority"`
	Labels        map[string]string `json:"labels"`
	SourceEventID string            `json:"source_event_id"`
	Status        string            `json:"status"`
	Version       int               `json:"version"`
	CommentCount  int               `json:"comment_count"`
	CreatedAt     string            `json:"created_at"`
	UpdatedAt     string            `json:"updated_at"`
	ClosedAt      string            `json:"closed_at"`
	Mirror        *mirror           `json:"mirror"`

	Disposition    string `json:"disposition"`
	ContentMatches *bool  `json:"content_matches"`
}

// mirror is what a ticket says of its copy at the desk.
type mirror struct {
	OperationID string `json:"operation_id"`
	State       string `json:"state"`
	Reference   string `json:"reference"`
}

// ticketOf is the ticket that an answer is about.
func ticketOf(t *testing.T, answer servertest.Answer) (found ticket) {
	t.Helper()
	answer.Decode(t, &found)
	return found
}

// page is a list as a client reads it.
type page struct {
	Items      []ticket `json:"items"`
	NextCursor string   `json:"next_cursor"`
}

func (p page) ids() (all []string) {
	for _, item := range p.Items {
		all = append(all, item.ID)
	}
	return all
}

// list reads a list as acme's agent.
func (r running) list(t *testing.T, query string) (p page) {
	t.Helper()
	r.agent().Send(t, "GET", "/v1/tickets"+query, "").Decode(t, &p)
	return p
}

// expect holds an answer to a status and a problem's code.
func expect(t *testing.T, what any, got servertest.Answer, status int, code problem.Code) problem.Problem {
	t.Helper()
	if got.Status != status {
		t.Errorf("%v: %s; want %d %s", what, got, status, code)
		return problem.Problem{}
	}
	p := got.Problem(t)
	if p.Code != code {
		t.Errorf("%v: %s; want %s", what, got, code)
	}
	return p
}

// count counts rows of a table.
func (r running) count(t *testing.T, table string) (n int64) {
	t.Helper()
	if err := r.db.Read(t.Context()).Table(table).Count(&n).Error; err != nil {
		t.Error(err)
	}
	return n
}

// healthy fails the test where fsck finds something.
func (r running) healthy(t *testing.T) {
	t.Helper()
	for _, v := range r.fsck(t) {
		t.Errorf("fsck: %s: %s %s", v.Check, v.Account, v.ID)
	}
}

func (r running) fsck(t *testing.T) []fsck.Violation {
	t.Helper()
	violations, err := fsck.Run(t.Context(), r.db, tickets.Checks()...)
	if err != nil {
		t.Fatal(err)
	}
	return violations
}
