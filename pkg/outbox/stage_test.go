package outbox

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/einmal/einmal/pkg/approval"
	"github.com/einmal/einmal/pkg/audit"
	"github.com/einmal/einmal/pkg/catalogue"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/fsck"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/review"
)

func TestMain(m *testing.M) {
	code := dbtest.Run(m)
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// The abilities that targets have.
var (
	keyed     = Ability{Key: true, KeyWindow: time.Hour, Lookup: true}
	keyedOnly = Ability{Key: true, KeyWindow: time.Hour}
	keyedShut = Ability{Key: true, KeyWindow: time.Hour, Lookup: true, Close: true}
	keyedHigh = Ability{Key: true, KeyWindow: time.Hour, Lookup: true, Close: true, Floor: true}
	floored   = Ability{Close: true, Floor: true}
	shutting  = Ability{Close: true}
	lookedUp  = Ability{Lookup: true}
	unable    = Ability{}
)

// stages counts the stages, each of which has an account of its own.
var stages atomic.Int64

// ttl is how long approvals hold on a stage.
const ttl = 30 * time.Minute

// tick passes before each thing that happens on a stage, so that events have an order.
const tick = time.Millisecond

// stage is an outbox with all that it needs, over a database whose clock the test moves, in front of a desk that answers what the
// test says.
type stage struct {
	t       *testing.T
	account string
	db      *database.DB
	clock   *clock
	exec    *idempotency.Executor
	record  func(tx database.Tx, events ...idempotency.Event) error
	desk    *desk
	target  Target
	box     *Outbox
	release func() // lets go on what hangs
}

// each runs test for each kind of database. The stages that set makes share one.
func each(t *testing.T, test func(t *testing.T, set func(*testing.T, Ability) *stage)) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		url := dbtest.URL(t, kind)
		test(t, func(t *testing.T, ability Ability) *stage { return newStage(t, url, ability) })
	})
}

// deskTypes are the operations whose effects the desk of a test has: one with priority, too.
var deskTypes = []string{catalogue.TicketMirror, catalogue.DeploymentCreate, catalogue.DeploymentCancel}

// newStage sets a stage on a database. In the end the database must be as package fsck wants it.
func newStage(t *testing.T, url string, ability Ability) *stage {
	t.Helper()
	clock := &clock{at: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	s := &stage{t: t, account: fmt.Sprintf("acme%d", stages.Add(1)), clock: clock, desk: newDesk(clock), release: func() {}}
	s.db = dbtest.Connect(t, url, database.Options{Clock: s.clock.now})
	events := audit.Open(s.db)
	t.Cleanup(func() {
		events.Close()
		violations, err := fsck.Run(context.Background(), s.db, slices.Concat(fsck.Operations, fsck.Effects)...)
		if err != nil || len(violations) > 0 {
			t.Errorf("the database in the end: %+v, %v", violations, err)
		}
		s.tellsOfTransitions()
	})
	s.record = events.Record
	s.exec = idempotency.New(s.db, idempotency.Options{Record: events.Record, Note: events.Note, Describe: Describe(s.db)})
	s.target = Target{
		Name: "desk of " + s.account, Types: deskTypes, Ability: ability, Provider: s.desk, Settle: settled,
		Timeout: time.Second, Lease: 10 * time.Second, MaxAttempts: 3, MaxAsks: 2, AskEvery: time.Second,
		Sends: Limit{Places: 4}, PrioritySends: Limit{Places: 2}, Asks: Limit{Places: 2},
	}
	s.build()
	return s
}

// tellsOfTransitions holds every event of the stage to the table of what may follow what.
func (s *stage) tellsOfTransitions() {
	s.t.Helper()
	var told []struct {
		Type, OperationID  string
		FromState, ToState idempotency.State
	}
	err := s.db.Read(context.Background()).Raw("SELECT type, operation_id, from_state, to_state FROM events WHERE account_id = ? AND from_state <> '' AND to_state <> ''", s.account).Scan(&told).Error
	if err != nil {
		s.t.Error(err)
	}
	for _, e := range told {
		if e.FromState != e.ToState && !e.FromState.CanBecome(e.ToState) {
			s.t.Errorf("%s of %s: %s can't become %s", e.Type, e.OperationID, e.FromState, e.ToState)
		}
	}
}

// build makes the outbox anew, with the target as it is.
func (s *stage) build() {
	s.t.Helper()
	box, err := New(Deps{
		DB: s.db, Exec: s.exec, Log: slog.New(slog.DiscardHandler),
		Record:    func(tx database.Tx, events ...idempotency.Event) error { return s.record(tx, events...) },
		Namespace: "test", Service: "tickets", ApprovalTTL: ttl, PollEvery: time.Minute,
	}, s.target)
	if err != nil {
		s.t.Fatal(err)
	}
	s.box = box
}

// settled is a service that has no domain row. What it answers says how the effect has ended.
func settled(_ database.Tx, e Effect, end End) (idempotency.Answer, error) {
	return idempotency.Answer{State: end.State, Status: 200, Body: fmt.Appendf(nil, "%s %s %s", end.State, end.Reason, e.Reference)}, nil
}

// accept accepts an operation with an effect, and returns that.
func (s *stage) accept(key string) Effect { return s.acceptOf(s.account, key, catalogue.TicketMirror) }

func (s *stage) acceptOf(account, key, operation string) Effect {
	s.t.Helper()
	return s.acceptIn(idempotency.Queued, account, key, operation)
}

func (s *stage) acceptIn(state idempotency.State, account, key, operation string) Effect {
	s.t.Helper()
	result, err := s.exec.Do(context.Background(), request(account, key, operation), func(tx database.Tx, op idempotency.Operation) (idempotency.Answer, error) {
		op.State = state
		if state == idempotency.AwaitingApproval {
			return idempotency.Answer{State: state}, s.box.Ask(tx, op, s.target.Name, "mirror", []byte(key), approval.Question{Facts: map[string]string{"title": key}, Consequence: "It is there."})
		}
		return idempotency.Answer{State: state}, s.box.Enqueue(tx, op, s.target.Name, "mirror", []byte(key))
	})
	if err != nil || result.Outcome != idempotency.OutcomeAccepted {
		s.t.Fatalf("accept %s: %s, %v", key, result.Outcome, err)
	}
	var e Effect
	if err := s.db.Read(context.Background()).Where("account_id = ? AND operation_id = ?", account, result.Operation.ID).Take(&e).Error; err != nil {
		s.t.Fatal(err)
	}
	return e
}

func request(account, key, operation string) idempotency.Request {
	return idempotency.Request{
		Key: idempotency.Key(key), Type: operation, Principal: "agent",
		Command: idempotency.Command{Account: account, Method: "POST", Path: "/v1/tickets", Body: map[string]any{"title": key}},
	}
}

// send lets a worker take the effect as it is now and send it, once.
func (s *stage) send(e Effect) Effect {
	s.t.Helper()
	s.clock.advance(tick)
	s.ok(s.box.send(context.Background(), s.target, s.now(e)))
	return s.now(e)
}

// ask lets a worker ask about the effect as it is now, once.
func (s *stage) ask(e Effect) Effect {
	s.t.Helper()
	s.clock.advance(tick)
	s.ok(s.box.ask(context.Background(), s.target, s.now(e)))
	return s.now(e)
}

// take takes the effect to be sent, and leaves it there: its worker is slow, or dead.
func (s *stage) take(e Effect) Effect {
	s.t.Helper()
	s.clock.advance(tick)
	e = s.now(e)
	taken, _, err := s.box.take(context.Background(), s.target, e, kindSend, func(tx database.Tx, by string) (bool, error) { return takeToSend(tx, e, s.target, by) })
	s.ok(err)
	if taken == nil {
		s.t.Fatalf("not taken: %+v", e)
	}
	return *taken
}

// takeToAsk takes the effect to ask about it, and leaves it there.
func (s *stage) takeToAsk(e Effect) Effect {
	s.t.Helper()
	s.clock.advance(tick)
	e = s.now(e)
	taken, _, err := s.box.take(context.Background(), s.target, e, s.target.howToAsk(e, s.db.Now()), func(tx database.Tx, by string) (bool, error) { return takeToAsk(tx, e, s.target, by) })
	s.ok(err)
	if taken == nil {
		s.t.Fatalf("not taken: %+v", e)
	}
	return *taken
}

// sent settles what the send of a taken effect has shown.
func (s *stage) sent(taken Effect, ev Evidence) Effect {
	s.t.Helper()
	s.clock.advance(tick)
	ev = s.target.Ability.believe(ev)
	s.ok(s.box.settle(context.Background(), s.target, taken, ev, func(e Effect, now time.Time) step { return s.target.afterSend(e, ev, now) }))
	return s.now(taken)
}

// inTx runs fn in a transaction and returns its error.
func (s *stage) inTx(fn func(tx database.Tx) error) error { return s.db.InTx(context.Background(), fn) }

// now reads the effect.
func (s *stage) now(e Effect) Effect {
	s.t.Helper()
	row, err := find(s.db.Read(context.Background()), e)
	s.ok(err)
	return *row
}

// operation reads the effect's operation as clients see it.
func (s *stage) operation(e Effect) idempotency.Operation {
	s.t.Helper()
	op, err := s.exec.ByID(context.Background(), e.AccountID, e.OperationID)
	s.ok(err)
	return op
}

// reviews reads the questions to a person, of a kind.
func (s *stage) reviews(kind review.Kind) []review.Review {
	s.t.Helper()
	all, err := review.List(context.Background(), s.db, s.account, review.Filter{}, "", 100)
	s.ok(err)
	return slices.DeleteFunc(all, func(r review.Review) bool { return r.Kind != kind })
}

// events reads what happened to the effect's operation since it was accepted, as "type from>to". Of one transaction comes first what
// was learned.
func (s *stage) events(e Effect) []string {
	s.t.Helper()
	var all []string
	s.ok(s.db.Read(context.Background()).Raw("SELECT type || ' ' || from_state || '>' || to_state FROM events WHERE operation_id = ? AND from_state <> '' ORDER BY at, type <> 'reconciled', id", e.OperationID).Scan(&all).Error)
	return all
}

func (s *stage) ok(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// clock is the database's. It stands still unless it is moved, or runs.
type clock struct {
	mu      sync.Mutex
	at      time.Time
	running time.Time // since when; zero: it stands still
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running.IsZero() {
		return c.at
	}
	return c.at.Add(time.Since(c.running))
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// run lets it run from now on.
func (c *clock) run() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running = time.Now()
}

// desk is a target. It answers calls as it is told to, and keeps count of them by effect key.
type desk struct {
	onSend, onLookup, onClose func(e Effect) Evidence

	clock *clock
	mu    sync.Mutex
	calls []string // "send", "lookup", "close" in their order
	sends map[string]int
}

func newDesk(clock *clock) *desk {
	return &desk{
		clock:    clock,
		onSend:   func(Effect) Evidence { return Evidence{Finding: Confirmed, Reference: "D-1"} },
		onLookup: func(Effect) Evidence { return Evidence{Finding: NotFound, Says: "no such ticket"} },
		onClose:  func(Effect) Evidence { return Evidence{Finding: Closed, Says: "closed"} },
		sends:    map[string]int{},
	}
}

func (d *desk) Send(_ context.Context, e Effect) Evidence {
	d.count(kindSend, e)
	return d.onSend(e)
}

func (d *desk) Lookup(_ context.Context, e Effect) Evidence {
	d.count(kindLookup, e)
	return d.onLookup(e)
}

func (d *desk) Close(_ context.Context, e Effect) Evidence {
	d.count(kindClose, e)
	return d.onClose(e)
}

func (d *desk) count(kind string, e Effect) {
	d.clock.advance(tick)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = append(d.calls, kind)
	if kind == kindSend {
		d.sends[e.EffectKey]++
	}
}

// called is how often a kind of call was made.
func (d *desk) called(kind string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for _, call := range d.calls {
		if call == kind {
			n++
		}
	}
	return n
}

// always answers every call with one finding.
func always(f Finding) func(Effect) Evidence {
	return func(Effect) Evidence { return Evidence{Finding: f, Says: "as told"} }
}
