package outboxhttp_test

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/einmal/einmal/pkg/audit"
	"github.com/einmal/einmal/pkg/catalogue"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/fsck"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/idempotency/idemhttp"
	"github.com/einmal/einmal/pkg/outbox"
	"github.com/einmal/einmal/pkg/outbox/outboxhttp"
	"github.com/einmal/einmal/pkg/problem"
	"github.com/einmal/einmal/pkg/server"
	"github.com/einmal/einmal/pkg/server/servertest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// patience is for what happens within a second; on a busy machine, within many.
const patience = 20 * time.Second

// The abilities that the desk of a test may have.
var (
	keyed    = outbox.Ability{Key: true, KeyWindow: time.Hour, Lookup: true}
	floored  = outbox.Ability{Close: true, Floor: true}
	lookedUp = outbox.Ability{Lookup: true}
	unable   = outbox.Ability{}
)

// effects is a service whose one write has an effect at a desk, and that answers about it as services do.
type effects struct {
	*servertest.Server
	db      *database.DB
	exec    *idempotency.Executor
	box     *outbox.Outbox
	desk    *desk
	secrets *servertest.Secrets
}

// start serves from a fresh database until the test ends. Effects stay where they are until work.
func start(t *testing.T, kind database.Kind, ability outbox.Ability, changes ...func(*outbox.Target)) effects {
	t.Helper()
	s := effects{db: dbtest.Open(t, kind), desk: &desk{}}
	events := audit.Open(s.db)
	t.Cleanup(func() {
		events.Close()
		violations, err := fsck.Run(context.Background(), s.db, slices.Concat(fsck.Operations, fsck.Effects)...)
		if err != nil || len(violations) > 0 {
			t.Errorf("the database in the end: %+v, %v", violations, err)
		}
	})
	s.secrets = servertest.KeepSecrets(t, s.db.SQL())
	s.exec = idempotency.New(s.db, idempotency.Options{Record: events.Record, Note: events.Note, Describe: outbox.Describe(s.db)})
	target := outbox.Target{
		Name: "desk", Types: []string{catalogue.TicketMirror}, Ability: ability, Provider: s.desk, Settle: settled,
		Timeout: patience, Lease: 2 * patience, MaxAttempts: 3, MaxAsks: 2, AskEvery: time.Hour, // nothing is asked by itself
		Sends: outbox.Limit{Places: 4}, PrioritySends: outbox.Limit{Places: 1}, Asks: outbox.Limit{Places: 2},
	}
	for _, change := range changes {
		change(&target)
	}
	var err error
	s.box, err = outbox.New(outbox.Deps{
		DB: s.db, Exec: s.exec, Log: s.secrets.Log, Record: events.Record,
		Namespace: "test", Service: "tickets", PollEvery: 10 * time.Millisecond,
	}, target)
	if err != nil {
		t.Fatal(err)
	}
	s.serve(t)
	return s
}

// settled is a service without domain rows.
func settled(_ database.Tx, e outbox.Effect, end outbox.End) (idempotency.Answer, error) {
	if end.State != idempotency.Succeeded {
		return idemhttp.Failure(e.OperationID, end.State, problem.New(problem.EffectRefused, string(end.Reason))), nil
	}
	return idemhttp.Success(http.StatusOK, map[string]string{"reference": e.Reference})
}

func (s *effects) serve(t *testing.T) {
	t.Helper()
	tokens := servertest.Tokens(t, "agent acme agent", "approver acme approver", "operator acme operator", "auditor acme auditor", "stranger globex operator")
	srv, err := server.New(server.Config{Listen: "127.0.0.1:0", ShutdownGrace: patience, TokensFile: tokens},
		server.Service{Name: "effects", Log: s.secrets.Log})
	if err != nil {
		t.Fatal(err)
	}
	e, read := srv.Echo(), server.Require(server.Readers...)
	h := outboxhttp.Handlers{DB: s.db, Executor: s.exec, Outbox: s.box, Caller: caller}
	for _, route := range h.Writes() {
		e.Add(route.Method, route.Path, route.Handler, server.Require(server.Writers...))
	}
	for _, route := range h.OperatorWrites() {
		e.Add(route.Method, route.Path, route.Handler, server.Require(server.Operator))
	}
	ops := idemhttp.Operations{Executor: s.exec, Caller: caller, Waiter: idemhttp.Waiter{Executor: s.exec, Settled: s.box.Settled}}
	e.GET("/v1/operations/:id", ops.Get, read)
	e.GET("/v1/reviews", h.ListReviews, read)
	e.GET("/v1/reviews/:id", h.GetReview, read)
	s.Server = servertest.StartUndocumented(t, srv, s.secrets)
}

func caller(c echo.Context) idemhttp.Caller {
	p := server.PrincipalOf(c)
	return idemhttp.Caller{Account: p.Account, Principal: p.Name}
}

// work lets the outbox bring effects out until the test ends, or what it returns is called.
func (s effects) work(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { s.box.Run(ctx); close(done) }()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(stop)
	return stop
}

// accept accepts an operation of acme with an effect, and returns its id.
func (s effects) accept(t *testing.T, k string) string {
	t.Helper()
	result, err := s.exec.Do(t.Context(), idempotency.Request{
		Key: idempotency.Key(servertest.Key(k)), Type: catalogue.TicketMirror,
		Command: idempotency.Command{Account: "acme", Method: "POST", Path: "/v1/tickets", Body: map[string]string{"title": k}},
	}, func(tx database.Tx, op idempotency.Operation) (idempotency.Answer, error) {
		op.State = idempotency.Queued
		return idempotency.Answer{State: op.State}, s.box.Enqueue(tx, op, "desk", "mirror", []byte("{}"))
	})
	if err != nil {
		t.Fatal(err)
	}
	s.box.Nudge()
	return result.Operation.ID
}

// moveTo makes all effects those of a target of that name, as if its settings had changed.
func (s effects) moveTo(t *testing.T, target string) {
	t.Helper()
	if err := s.db.InTx(t.Context(), func(tx database.Tx) error { return tx.Exec("UPDATE effects SET target = ?", target).Error }); err != nil {
		t.Fatal(err)
	}
}

// about sends a write about an operation, as acme's agent.
func (s effects) about(t *testing.T, what, id, k string) servertest.Answer {
	t.Helper()
	return s.As("agent").Send(t, "POST", "/v1/operations/"+id+"/"+what, "{}", key(k))
}

// operation is the resource as a client reads it.
type operation struct {
	ID, State, Effect, Target, Reference string
	EffectKey                            string `json:"effect_key"`
	ReviewID                             string `json:"review_id"`
	NextAction                           string `json:"next_action"`
	RetryAfterSeconds                    int    `json:"retry_after_seconds"`
	Attempts                             []struct{ ID, Outcome, Error, Reference string }
}

// outcomes are those of its sends; empty while one is under way.
func (op operation) outcomes() []string {
	all := []string{}
	for _, a := range op.Attempts {
		all = append(all, a.Outcome)
	}
	return all
}

func (s effects) operation(t *testing.T, id string) (op operation) {
	t.Helper()
	s.As("agent").Send(t, "GET", "/v1/operations/"+id, "").Decode(t, &op)
	return op
}

// becomes waits until an operation is as it must be.
func (s effects) becomes(t *testing.T, id, what string, holds func(operation) bool) (op operation) {
	t.Helper()
	deadline := time.After(patience)
	for {
		if op = s.operation(t, id); holds(op) {
			return op
		}
		select {
		case <-deadline:
			t.Fatalf("waited in vain until the operation %s: %+v", what, op)
		case <-time.After(time.Millisecond):
		}
	}
}

// in is a condition for becomes.
func in(state string) func(operation) bool {
	return func(op operation) bool { return op.State == state }
}

// waitForWaiter waits until a statement waits for somebody's lock. On SQLite, where a transaction waits before its first, nothing tells.
func (s effects) waitForWaiter(t *testing.T, kind database.Kind) {
	t.Helper()
	for waiting := 0; kind == database.Postgres && waiting == 0; {
		err := s.db.Read(t.Context()).Raw("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'").Scan(&waiting).Error
		if err != nil {
			t.Fatal(err)
		}
	}
}

// events reads what happened to an operation, as "type from>to by principal", of one type.
func (s effects) events(t *testing.T, id, of string) (all []string) {
	t.Helper()
	err := s.db.Read(t.Context()).Raw("SELECT type || ' ' || from_state || '>' || to_state || ' by ' || principal FROM events WHERE operation_id = ? AND type = ? ORDER BY id", id, of).Scan(&all).Error
	if err != nil {
		t.Error(err)
	}
	return all
}

// count counts rows of a table.
func (s effects) count(t *testing.T, table string) (n int64) {
	t.Helper()
	if err := s.db.Read(t.Context()).Table(table).Count(&n).Error; err != nil {
		t.Error(err)
	}
	return n
}

// woken fails the test unless who waits was woken before the answer was given.
func woken(t *testing.T, settled <-chan struct{}) {
	t.Helper()
	select {
	case <-settled:
	default:
		t.Error("who waits for the operation was not woken")
	}
}

// replays makes sure that an answer is kept under its key, to the byte, with what a client needs beside the body.
func replays(t *testing.T, first servertest.Answer, again func() servertest.Answer) {
	t.Helper()
	second := again()
	same := second.Status == first.Status && string(second.Body) == string(first.Body)
	for _, header := range []string{"Operation-Id", "Location", "Retry-After", "Content-Type"} {
		same = same && second.Header.Get(header) == first.Header.Get(header)
	}
	if !same || second.Outcome() != "replayed" {
		t.Errorf("first    %s %v\nreplayed %s %v", first, first.Header, second, second.Header)
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

// key is the header of a bare key.
func key(k string) string { return "Idempotency-Key: " + servertest.Key(k) }

// desk is a system outside that answers what the test says; nothing is said, nothing is shown.
type desk struct {
	mu                      sync.Mutex
	onSend, onLook, onClose func() outbox.Evidence
	calls                   []string
}

func (d *desk) says(send, look, shut func() outbox.Evidence) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.onSend, d.onLook, d.onClose = send, look, shut
}

func (d *desk) called(kind string) (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, call := range d.calls {
		if call == kind {
			n++
		}
	}
	return n
}

func (d *desk) answer(kind string, of func() func() outbox.Evidence) outbox.Evidence {
	d.mu.Lock()
	d.calls = append(d.calls, kind)
	say := of()
	d.mu.Unlock()
	if say == nil {
		return outbox.Evidence{}
	}
	return say()
}

func (d *desk) Send(context.Context, outbox.Effect) outbox.Evidence {
	return d.answer("send", func() func() outbox.Evidence { return d.onSend })
}

func (d *desk) Lookup(context.Context, outbox.Effect) outbox.Evidence {
	return d.answer("lookup", func() func() outbox.Evidence { return d.onLook })
}

func (d *desk) Close(context.Context, outbox.Effect) outbox.Evidence {
	return d.answer("close", func() func() outbox.Evidence { return d.onClose })
}

func shows(ev outbox.Evidence) func() outbox.Evidence { return func() outbox.Evidence { return ev } }

var (
	ambiguous = outbox.Evidence{Finding: outbox.Ambiguous, Says: "no answer"}
	happened  = outbox.Evidence{Finding: outbox.Confirmed, Reference: "D-1"}
)
