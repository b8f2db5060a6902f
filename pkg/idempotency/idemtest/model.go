package idemtest

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

// Model makes random attempts at few operations, on two replicas, with everything that may come between: duplicates at once,
// other commands, refusals, panics, lost connections, restarts, time, and lost answers to COMMITs unless lose is nil. After each
// step every attempt must have been told what the oracle says, and the database must hold it. The flags of rapid apply.
func Model(t *testing.T, fresh Fresh, lose Lose) {
	fewer(t, "rapid.checks", "25") // a hundred take minutes with the race detector, and find no more
	l := newLab(t, fresh)
	m := &model{lab: l, lose: lose}
	for range 2 {
		m.pools = append(m.pools, l.connect(t, database.Options{Clock: m.clock.read}))
	}
	rapid.Check(t, m.run)
}

// fewer sets a flag unless somebody did.
func fewer(t *testing.T, name, value string) {
	t.Helper()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	if !given {
		if err := flag.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
}

type model struct {
	*lab
	lose  Lose
	pools []*database.DB
	clock clock
	turn  int

	// Of one run.
	oracle   oracle
	replicas []*idempotency.Executor
	accounts []string
}

func (m *model) run(t *rapid.T) {
	m.turn++
	m.oracle = oracle{retention: 24 * time.Hour, facts: map[identity]*fact{}}
	m.accounts = []string{fmt.Sprintf("model-%d-a", m.turn), fmt.Sprintf("model-%d-b", m.turn)}
	m.clock.set(time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC))
	m.replicas = make([]*idempotency.Executor, len(m.pools))
	for i := range m.replicas {
		m.start(i)
	}
	actions := map[string]func(*rapid.T){
		"":            m.check,
		"attempt":     m.attempt,
		"another":     m.attempt, // more often than the others
		"duplicates":  m.duplicates,
		"settle":      m.settle,
		"time passes": m.timePasses,
		"drop a body": m.dropBody,
		"start anew":  func(t *rapid.T) { m.start(rapid.IntRange(0, len(m.replicas)-1).Draw(t, "replica")) },
	}
	if m.lose != nil {
		actions["lose a COMMIT"] = m.loseCommit
	}
	t.Repeat(actions)
}

// start is a process that remembers nothing.
func (m *model) start(replica int) {
	m.replicas[replica] = idempotency.New(m.pools[replica], idempotency.Options{WaitBudget: 30 * time.Second, ResponseRetention: m.oracle.retention})
}

// attempts of one operation, each with its own behaviour.
type drawn struct {
	identity
	command    int
	replicas   []int
	behaviours []behaviour
}

func (m *model) draw(t *rapid.T, n int) drawn {
	some := func(label string, n int) int { return rapid.IntRange(0, n-1).Draw(t, label) }
	d := drawn{
		identity: identity{m.accounts[some("account", 2)], idempotency.Key(fmt.Sprint("k", some("key", 3)))},
		command:  some("command", 2),
	}
	for range n {
		d.replicas = append(d.replicas, some("replica", len(m.replicas)))
		d.behaviours = append(d.behaviours, rapid.SampledFrom([]behaviour{succeeds, succeeds, accepts, refusesNow, refusesFinal, fails, breaks, dies}).Draw(t, "apply"))
	}
	return d
}

func (m *model) attempt(t *rapid.T) { m.make(t, m.draw(t, 1)) }

func (m *model) duplicates(t *rapid.T) { m.make(t, m.draw(t, rapid.IntRange(2, 8).Draw(t, "copies"))) }

func (m *model) loseCommit(t *rapid.T) {
	d := m.draw(t, 1)
	d.behaviours[0] = rapid.SampledFrom([]behaviour{succeeds, accepts}).Draw(t, "apply instead")
	done := rapid.Bool().Draw(t, "done")
	if m.oracle.facts[d.identity] == nil {
		m.lose(done)
	}
	m.make(t, d)
}

// make makes the attempts at once and holds what they were told against the oracle.
func (m *model) make(t *rapid.T, d drawn) {
	results := make([]idempotency.Result, len(d.behaviours))
	errs := make([]error, len(d.behaviours))
	var all sync.WaitGroup
	for i, b := range d.behaviours {
		all.Go(func() { results[i], errs[i] = m.do(d, d.replicas[i], b) })
	}
	all.Wait()
	free := m.oracle.meets(d.identity, d.command, m.clock.read()) == ""
	first := -1
	if free {
		first = m.first(t, d, results)
	}
	met := m.oracle.meets(d.identity, d.command, m.clock.read())
	for i, b := range d.behaviours {
		own, takes, _ := b.does()
		got := results[i]
		switch {
		case i == first:
		case errs[i] == nil && got.Outcome == met: // it came later, or was woken
			if f := m.oracle.facts[d.identity]; got.Operation.ID != f.operation.ID || met == idempotency.OutcomeReplayed && !bytes.Equal(got.Answer.Body, f.operation.ResponseBody) {
				t.Fatalf("attempt %d that %s: %s of %s with %s; want %s with %s", i, b, got.Outcome, got.Operation.ID, got.Answer.Body, f.operation.ID, f.operation.ResponseBody)
			}
		case free && !takes && own == "" && errs[i] != nil:
		case free && !takes && own != "" && errs[i] == nil && got.Outcome == own && got.Operation.ID == "":
		default:
			t.Fatalf("attempt %d that %s: %q, %v; the key was free: %v, later attempts meet %q", i, b, got.Outcome, errs[i], free, met)
		}
	}
}

// first finds the attempt that claimed a free key, of which there must be one if any was to, and learns what it did.
func (m *model) first(t *rapid.T, d drawn, results []idempotency.Result) int {
	first, due := -1, false
	for i, b := range d.behaviours {
		own, takes, effects := b.does()
		due = due || takes
		got := results[i]
		if !takes || got.Outcome != own || own == idempotency.OutcomeRefused && got.Operation.ID == "" {
			continue
		}
		if first >= 0 {
			t.Fatalf("attempts %d and %d both claimed %q", first, i, d.key)
		}
		first = i
		m.oracle.facts[d.identity] = &fact{d.command, got.Operation, effects}
	}
	if due && first < 0 {
		t.Fatalf("none of the attempts claimed %q", d.key)
	}
	return first
}

// do makes one attempt, and repeats it as callers do.
func (m *model) do(d drawn, replica int, b behaviour) (idempotency.Result, error) {
	var w work
	apply := map[behaviour]idempotency.Apply{
		succeeds:     w.apply,
		accepts:      w.answering(idempotency.Answer{State: idempotency.Queued}),
		refusesNow:   w.failing(&idempotency.Refusal{Answer: refused()}),
		refusesFinal: w.failing(&idempotency.Refusal{Answer: refused(), Final: true}),
		fails:        w.failing(errors.New("boom")),
		breaks:       w.ending(func(database.Tx, idempotency.Operation) (idempotency.Answer, error) { panic("boom") }),
		dies: w.ending(func(tx database.Tx, _ idempotency.Operation) (idempotency.Answer, error) {
			if !m.postgres() {
				return idempotency.Answer{}, errors.New("dead") // as far as SQLite can tell
			}
			return created(), tx.Exec("SELECT pg_terminate_backend(pg_backend_pid())").Error
		}),
	}[b]
	c := caller{lab: m.lab, account: d.account}
	return repeat(context.Background(), func() (result idempotency.Result, err error) {
		defer func() {
			if r := recover(); r != nil {
				err = fmt.Errorf("recovered: %v", r)
			}
		}()
		return m.replicas[replica].Do(context.Background(), c.request(d.key, d.command), apply)
	})
}
