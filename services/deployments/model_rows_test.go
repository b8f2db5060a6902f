package deployments

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/einmal/einmal/migrations"
	"github.com/einmal/einmal/pkg/catalogue"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/outbox"
)

// lockRows is what the tables say of the environment and its two deployments.
type lockRows struct {
	holder, token, floor uint8 // holder: 0 nobody, else the number of the deployment
	of                   [2]lockRow
}

type lockRow struct {
	state   dState
	waiting bool
	due     bool
	token   uint8
}

// dState is the state of an effect.
type dState uint8

const (
	dQueued dState = iota
	dRunning
	dUnknown
	dSucceeded
	dFailed
)

var effectStates = [...]idempotency.State{idempotency.Queued, idempotency.Running, idempotency.Unknown, idempotency.Succeeded, idempotency.Failed}

// lockModel is the real store and settler over an embedded database, in one transaction.
type lockModel struct {
	t       *testing.T
	rules   lockRules
	only    string
	db      *database.DB
	tx      database.Tx
	settle  *settler
	answers map[question]answered // of statements: the same rows get the same answer
	asked   int
}

type question struct {
	what  string
	rows  lockRows
	i     int
	floor uint8
}

type answered struct {
	rows lockRows
	ok   bool
}

func newLockModel(t *testing.T, rules lockRules) *lockModel {
	t.Helper()
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	db := dbtest.OpenWith(t, database.SQLite, database.Options{Clock: func() time.Time { return now }})
	if err := migrations.Up(t.Context(), db, Name); err != nil {
		t.Fatal(err)
	}
	m := &lockModel{t: t, rules: rules, db: db, settle: &settler{store: store{db}}, answers: map[question]answered{}}
	box, err := outbox.New(outbox.Deps{
		DB: db, Exec: idempotency.New(db, idempotency.Options{}), Log: slog.New(slog.DiscardHandler),
		Record: func(database.Tx, ...idempotency.Event) error { return nil }, PollEvery: time.Hour,
	}, outbox.Target{
		Name: clusterName, Types: []string{catalogue.DeploymentCreate}, Ability: outbox.Ability{Key: true, KeyWindow: time.Hour, Lookup: true, Close: true, Floor: true},
		Provider: noProvider{}, Settle: m.settle.rolledOut, Lock: m.settle.lock(), Timeout: time.Second, Lease: time.Minute,
		MaxAttempts: 9, MaxAsks: 9, AskEvery: time.Second,
		Sends: outbox.Limit{Places: 1}, PrioritySends: outbox.Limit{Places: 1}, Asks: outbox.Limit{Places: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	m.settle.outbox = box
	return m
}

// noProvider is not called: the model's outside stands in its place.
type noProvider struct{}

func (noProvider) Send(context.Context, outbox.Effect) outbox.Evidence   { panic("called") }
func (noProvider) Lookup(context.Context, outbox.Effect) outbox.Evidence { panic("called") }
func (noProvider) Close(context.Context, outbox.Effect) outbox.Evidence  { panic("called") }

// ids of the two deployments; their operations and effects are named after them.
var lockIDs = [2]string{"dep_1", "dep_2"}

// prepare makes the rows that begin changes.
func (m *lockModel) prepare() {
	_, err := m.settle.store.declare(m.tx, "acme", "prod", false)
	m.ok(err)
	for i, id := range lockIDs {
		m.ok(m.settle.store.insert(m.tx, Deployment{
			AccountID: "acme", ID: id, OperationID: "op_" + id, Kind: Deploy, Service: "web", Environment: "prod", Artifact: "a@b", Arrival: int64(i + 1), CreatedAt: m.tx.Now,
		}))
		m.ok(m.settle.outbox.Wait(m.tx, idempotency.Operation{AccountID: "acme", ID: "op_" + id, IdempotencyKey: idempotency.Key(id), Type: catalogue.DeploymentCreate, State: idempotency.Queued}, clusterName, "rollout", []byte("{}")))
	}
}

// begin is how accept leaves the rows: the first holds the environment, the second waits.
func (m *lockModel) begin() lockWorld {
	w := lockWorld{}
	w.rows.holder = 1
	w.rows.of[0].due = true
	w.rows.of[1].waiting = true
	return w
}

// do runs one of the service's own steps on rows, and returns what they are then, and whether it was possible.
func (m *lockModel) do(what string, rows lockRows, i int, floor uint8) (lockRows, bool) {
	q := question{what, rows, i, floor}
	if known, found := m.answers[q]; found {
		return known.rows, known.ok
	}
	m.asked++
	m.write(rows)
	d, err := m.settle.store.byID(m.tx.DB, "acme", lockIDs[i])
	m.ok(err)
	effect := outbox.Effect{AccountID: "acme", OperationID: d.OperationID}
	ok := true
	switch what {
	case "draw":
		_, err = m.settle.lock().Draw(m.tx, effect)
		if errors.Is(err, errNotHolder) {
			if !m.rules.HolderDraws { // as if nobody had asked who holds it
				err = m.tx.Exec("UPDATE environments SET token = token + 1").Error
				m.ok(err)
				err = m.settle.store.drawn(m.tx, d, int64(rows.token)+1)
			} else {
				ok, err = false, nil
			}
		}
	case "floor":
		err = m.settle.lock().Learn(m.tx, effect, outbox.Evidence{Finding: outbox.Closed, Floor: int64(floor)})
	case "hand on":
		err = m.settle.handOn(m.tx, d)
	case "may decide":
		err = m.settle.lock().MayDecide(m.tx, effect)
		if errors.Is(err, outbox.ErrNotClosed) {
			ok, err = false, nil
		}
	}
	m.ok(err)
	after := m.read()
	if what == "draw" && ok {
		after.of[i].state, after.of[i].due = dRunning, false
	}
	m.answers[q] = answered{after, ok}
	return after, ok
}

// write makes the tables say what rows say.
func (m *lockModel) write(rows lockRows) {
	holder := ""
	if rows.holder != 0 {
		holder = lockIDs[rows.holder-1]
	}
	m.exec("UPDATE environments SET holder = ?, token = ?, floor = ?", holder, rows.token, rows.floor)
	for i, r := range rows.of {
		m.exec("UPDATE deployments SET waiting = ?, fencing_token = ? WHERE id = ?", r.waiting, r.token, lockIDs[i])
		var due *time.Time
		if r.due {
			due = &m.tx.Now
		}
		m.exec("UPDATE effects SET state = ?, next_at = ? WHERE operation_id = ?", effectStates[r.state], due, "op_"+lockIDs[i])
	}
}

func (m *lockModel) read() (rows lockRows) {
	env, err := m.settle.store.environment(m.tx.DB, "acme", "prod")
	m.ok(err)
	rows.token, rows.floor = uint8(env.Token), uint8(env.Floor)
	for i, id := range lockIDs {
		if env.Holder == id {
			rows.holder = uint8(i + 1)
		}
		d, err := m.settle.store.byID(m.tx.DB, "acme", id)
		m.ok(err)
		var due int64
		m.ok(m.tx.Table("effects").Where("operation_id = ? AND next_at IS NOT NULL", d.OperationID).Count(&due).Error)
		r := lockRow{waiting: d.Waiting, due: due == 1, token: uint8(d.FencingToken)}
		for state, name := range effectStates {
			if d.State == name {
				r.state = dState(state)
			}
		}
		rows.of[i] = r
	}
	return rows
}

func (m *lockModel) exec(statement string, args ...any) { m.ok(m.tx.Exec(statement, args...).Error) }

func (m *lockModel) ok(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}
