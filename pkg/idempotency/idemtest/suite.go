// Package idemtest is the contract of package idempotency as a suite, for every database that an Executor may meet.
//
//	func TestContract(t *testing.T) { idemtest.Exercise(t, fresh) }
//	func TestModel(t *testing.T)    { idemtest.Model(t, fresh) }
//
// Effects are counted as rows in the database, in tables of the suite's own: what an attempt was told proves nothing. Each topic
// has a file; each test has an account of its own, so that many can share a database.
package idemtest

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

// Fresh makes an empty database with the tables of migrations.Shared, which vanishes with the test.
type Fresh func(t testing.TB) Connect

// Connect opens a pool on that database and closes it with the test. Each is like the pool of another replica.
type Connect func(t testing.TB, options database.Options) *database.DB

// Exercise tests everything that package idempotency promises, the lost answer to a COMMIT excepted (see LostCommits).
func Exercise(t *testing.T, fresh Fresh) {
	l := newLab(t, fresh)
	for _, topic := range []struct {
		name string
		test func(t *testing.T, l *lab)
	}{
		{"claim", testClaim},
		{"race", testRace},
		{"replay", testReplay},
		{"conflict", testConflict},
		{"refusal", testRefusal},
		{"wait", testWait},
		{"failure", testFailure},
		{"cancel", testCancel},
		{"crash", testCrash},
		{"contention", testContention},
		{"expiry", testExpiry},
		{"settle", testSettle},
		{"follow", testFollow},
		{"read", testRead},
		{"event", testEvent},
		{"isolation", testIsolation}, // last: it changes a setting of the database
	} {
		t.Run(topic.name, func(t *testing.T) { topic.test(t, l) })
	}
}

// lab is a database with the suite's own tables.
type lab struct {
	db      *database.DB
	connect Connect
	callers atomic.Int64
}

func newLab(t *testing.T, fresh Fresh) *lab {
	t.Helper()
	connect := fresh(t)
	l := &lab{db: connect(t, database.Options{}), connect: connect}
	for _, table := range []string{
		`CREATE TABLE idemtest_effects (account_id text NOT NULL, id text NOT NULL, idempotency_key text NOT NULL, operation_id text NOT NULL,
			PRIMARY KEY (account_id, id))`,
		`CREATE TABLE idemtest_counters (account_id text NOT NULL, name text NOT NULL, n integer NOT NULL, PRIMARY KEY (account_id, name))`,
		`CREATE TABLE idemtest_events (account_id text NOT NULL, seq integer NOT NULL, operation_id text NOT NULL, type text NOT NULL,
			to_state text NOT NULL, PRIMARY KEY (account_id, seq))`,
	} {
		l.exec(t, table)
	}
	return l
}

// postgres reports whether several writers can meet. In SQLite whoever writes is alone.
func (l *lab) postgres() bool { return l.db.Kind() == database.Postgres }

func (l *lab) exec(t testing.TB, statement string, args ...any) {
	t.Helper()
	if err := l.db.Read(t.Context()).Exec(statement, args...).Error; err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// caller is an account that no other test uses.
type caller struct {
	*lab
	t       *testing.T
	account string
}

func (l *lab) caller(t *testing.T) *caller {
	t.Helper()
	return &caller{l, t, fmt.Sprintf("account-%d", l.callers.Add(1))}
}

// request is an attempt at one command of this account; another n is another command.
func (c *caller) request(key idempotency.Key, n int) idempotency.Request {
	return idempotency.Request{
		Key: key, Type: "thing.create", Principal: "tester", AgentRun: "run-1", RequestID: "req-1",
		Command: idempotency.Command{Account: c.account, Method: "POST", Path: "/v1/things", Body: map[string]any{"n": n}},
	}
}

// do makes an attempt that must be answered.
func (c *caller) do(x *idempotency.Executor, req idempotency.Request, apply idempotency.Apply) idempotency.Result {
	c.t.Helper()
	result, err := x.Do(c.t.Context(), req, apply)
	if err != nil {
		c.t.Fatalf("attempt at %q: %v", req.Key, err)
	}
	return result
}

func (c *caller) wantOutcome(got idempotency.Result, want idempotency.Outcome) {
	c.t.Helper()
	if got.Outcome != want {
		c.t.Fatalf("outcome %q, want %q", got.Outcome, want)
	}
}

// wantRows checks how many effects and operations there are under a key.
func (c *caller) wantRows(key idempotency.Key, effects, operations int) {
	c.t.Helper()
	if n := c.count("idemtest_effects", key); n != effects {
		c.t.Errorf("%d effects under %q, want %d", n, key, effects)
	}
	if n := c.count("operations", key); n != operations {
		c.t.Errorf("%d operations under %q, want %d", n, key, operations)
	}
}

func (c *caller) count(table string, key idempotency.Key) (n int) {
	c.t.Helper()
	err := c.db.Read(c.t.Context()).Raw("SELECT count(*) FROM "+table+" WHERE account_id = ? AND idempotency_key = ?", c.account, key).Scan(&n).Error
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}

// stored is the operation as it is in the database.
func (c *caller) stored(key idempotency.Key) (op idempotency.Operation) {
	c.t.Helper()
	if err := c.db.Read(c.t.Context()).Where("account_id = ? AND idempotency_key = ?", c.account, key).Take(&op).Error; err != nil {
		c.t.Fatal(err)
	}
	return op
}

// wantExecuted checks an attempt that another goroutine makes.
func (c *caller) wantExecuted(got idempotency.Result, err error) {
	if err != nil || got.Outcome != idempotency.OutcomeExecuted {
		c.t.Errorf("got %s, %v; want it executed", got.Outcome, err)
	}
}
