package idemhttp_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/idempotency/idemhttp"
	"github.com/einmal/einmal/pkg/problem"
	"github.com/einmal/einmal/pkg/server"
	"github.com/einmal/einmal/pkg/server/servertest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// createThing is a command with a member of every kind that a command may have.
type createThing struct {
	Name   string            `json:"name"`
	Count  int64             `json:"count"`
	Small  int8              `json:"small"`
	Urgent bool              `json:"urgent"`
	Kind   kind              `json:"kind"`
	Note   *string           `json:"note"`
	Labels map[string]string `json:"labels"`
	Tags   []string          `json:"tags"`
	Owner  owner             `json:"owner"`
	Parts  []owner           `json:"parts"`
	Slash  string            `json:"a/b~c"` // to be escaped in a pointer
	Do     string            `json:"do"`    // what the service does with it
	Inner  string            `json:"-"`     // nothing of a client's
}

type kind string

type owner struct {
	Team  string `json:"team"`
	Pager int64  `json:"pager"`
}

func newThing() *createThing {
	return &createThing{Kind: "plain", Labels: map[string]string{}, Tags: []string{"default"}, Owner: owner{Team: "nobody"}}
}

func (c *createThing) Validate() (violations []problem.Violation) {
	if c.Name == "" {
		violations = append(violations, problem.Violation{Pointer: "/name", Detail: "must not be empty"})
	}
	if c.Count > 1000 && c.Count != idemhttp.MaxInteger {
		violations = append(violations, problem.Violation{Pointer: "/count", Detail: "must be at most 1000"})
	}
	return violations
}

// things is a service over the table things. What it does with a command, the command says.
type things struct {
	*servertest.Server
	db   *database.DB
	exec *idempotency.Executor
	view described
	held chan struct{} // closed to let go what "do": "wait" holds
	ran  chan struct{} // one for each time that "wait" has begun
}

func start(t *testing.T, kind database.Kind) *things {
	t.Helper()
	return startOn(t, dbtest.Open(t, kind), idempotency.Options{})
}

func startOn(t *testing.T, db *database.DB, options idempotency.Options) *things {
	t.Helper()
	if err := db.SQL().PingContext(t.Context()); err == nil {
		if _, err := db.SQL().ExecContext(t.Context(), "CREATE TABLE IF NOT EXISTS things (account_id text, id text, name text)"); err != nil {
			t.Fatal(err)
		}
	}
	s := &things{db: db, held: make(chan struct{}), ran: make(chan struct{}, 1000)}
	options.Describe = s.view.describe
	s.exec = idempotency.New(db, options)
	secrets := servertest.KeepSecrets(t)
	srv, err := server.New(server.Config{Listen: "127.0.0.1:0", ShutdownGrace: 10 * time.Second, TokensFile: servertest.Tokens(t), Demo: true},
		server.Service{Name: "things", Log: secrets.Log})
	if err != nil {
		t.Fatal(err)
	}
	ops := idemhttp.Operations{Executor: s.exec, Caller: caller, Waiter: s.waiter()}
	read, write := server.Require(server.Readers...), server.Require(server.Writers...)
	for _, route := range s.routes() {
		srv.Echo().Add(route.Method, route.Path, route.Handler, write)
	}
	srv.Echo().GET("/v1/operations", ops.List, read)
	srv.Echo().GET("/v1/operations/:id", ops.Get, read)
	srv.Echo().POST("/v1/fingerprints", idemhttp.Fingerprints(s.routes(), caller), read)
	s.Server = servertest.StartUndocumented(t, srv, secrets)
	return s
}

// waiter is one that nobody tells when something is settled, as in a replica that does not settle it.
func (s *things) waiter() idemhttp.Waiter {
	return idemhttp.Waiter{Executor: s.exec, Settled: func(string) <-chan struct{} { return nil }}
}

// described is what is known of effects outside, as an outbox knows it: by operation, its state while it is open and the rest.
type described struct {
	mu     sync.Mutex
	states map[string]idempotency.State
	known  map[string]idempotency.Effect
}

func (d *described) put(id string, state idempotency.State, known idempotency.Effect) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.states == nil {
		d.states, d.known = map[string]idempotency.State{}, map[string]idempotency.Effect{}
	}
	d.states[id], d.known[id] = state, known
}

func (d *described) describe(_ context.Context, ops []idempotency.Operation) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range ops {
		state, ok := d.states[ops[i].ID]
		if !ok {
			continue
		}
		if !ops[i].State.Final() {
			ops[i].State = state
		}
		known := d.known[ops[i].ID]
		ops[i].Effect = &known
	}
	return nil
}

func (s *things) routes() []idemhttp.Route {
	command := func() idemhttp.Command { return newThing() }
	return []idemhttp.Route{
		{Method: "POST", Path: "/v1/things", Type: "thing.create", Command: command, Handler: s.create("thing.create")},
		{Method: "PUT", Path: "/v1/things/:id/part", Type: "thing.part", Command: command, Handler: s.create("thing.part")},
	}
}

func caller(c echo.Context) idemhttp.Caller {
	p := server.PrincipalOf(c)
	return idemhttp.Caller{Account: p.Account, Principal: p.Name}
}

func (s *things) create(operationType string) echo.HandlerFunc {
	return func(c echo.Context) error {
		call, err := idemhttp.Begin(c, caller(c))
		if err != nil {
			return err
		}
		command := newThing()
		if err := call.Decode(command); err != nil {
			return err
		}
		result, err := s.exec.Do(c.Request().Context(), call.Request(operationType, command), s.apply(command))
		if err != nil {
			return err
		}
		if result, err = s.waiter().Wait(c, result); err != nil {
			return err
		}
		return idemhttp.Write(c, result)
	}
}

func (s *things) apply(command *createThing) idempotency.Apply {
	return func(tx database.Tx, op idempotency.Operation) (idempotency.Answer, error) {
		id := "thg_" + op.ID
		if err := tx.Exec("INSERT INTO things (account_id, id, name) VALUES (?, ?, ?)", op.AccountID, id, command.Name).Error; err != nil {
			return idempotency.Answer{}, err
		}
		resource := idempotency.Resource{Type: "thing", ID: id, Href: "/v1/things/" + id}
		switch command.Do {
		case "wait":
			s.ran <- struct{}{}
			<-s.held
		case "queue":
			return idempotency.Answer{State: idempotency.Queued, Resource: resource}, nil
		case "ask":
			return idempotency.Answer{State: idempotency.AwaitingApproval, Resource: resource}, nil
		case "refuse":
			return idempotency.Answer{}, idemhttp.RefusalFinal(op, problem.New(problem.VersionMismatch, "It is at version 7."))
		case "later":
			return idempotency.Answer{}, idemhttp.RefusalForNow(problem.New(problem.OrderBusy, "Another one is live."))
		case "missing":
			return idempotency.Answer{}, problem.New(problem.NotFound, "There is no such thing.")
		case "fail":
			return idempotency.Answer{}, fmt.Errorf("create thing: the password is hunter2")
		case "panic":
			panic("the password is hunter2")
		case "nothing":
			return idempotency.Answer{State: idempotency.Succeeded, Status: http.StatusNoContent, Body: []byte{}}, nil
		}
		done, err := idemhttp.Success(http.StatusCreated, map[string]any{"id": id, "name": command.Name, "made_at": idemhttp.Time(tx.Now)})
		done.Location, done.Resource = resource.Href, resource
		return done, err
	}
}

// post sends a creation as acme's agent.
func (s *things) post(t *testing.T, key, body string, headers ...string) servertest.Answer {
	t.Helper()
	return s.As("demo-agent").Send(t, "POST", "/v1/things", body, append(headers, key)...)
}

// get reads as acme's agent.
func (s *things) get(t *testing.T, path string, headers ...string) servertest.Answer {
	t.Helper()
	return s.As("demo-agent").Send(t, "GET", path, "", headers...)
}

// key is the header of a bare key, and quoted that of the same key in its other spelling.
func key(k string) string    { return spelled(servertest.Key(k)) }
func quoted(k string) string { return spelled(`"` + servertest.Key(k) + `"`) }

// spelled is the header with what may be no key.
func spelled(value string) string { return "Idempotency-Key: " + value }

// count counts rows of a table.
func (s *things) count(t *testing.T, table string) (n int64) {
	t.Helper()
	if err := s.db.Read(t.Context()).Table(table).Count(&n).Error; err != nil {
		t.Error(err)
	}
	return n
}

// keepsNothing fails the test where anything was stored.
func (s *things) keepsNothing(t *testing.T) {
	t.Helper()
	if ops, rows := s.count(t, "operations"), s.count(t, "things"); ops != 0 || rows != 0 {
		t.Errorf("%d operations and %d things were stored", ops, rows)
	}
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

const thing = `{"name":"a"}`
