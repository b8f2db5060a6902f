package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/einmal/einmal/pkg/catalogue"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

// Deps is what an Outbox is given.
type Deps struct {
	DB   *database.DB
	Exec *idempotency.Executor
	Log  *slog.Logger

	// Record writes events in the transaction of what they tell; the hook of idempotency.Options.
	Record func(tx database.Tx, events ...idempotency.Event) error

	// Namespace and Service are parts of every effect key (see Key). They never change once effects were sent. Without a Namespace it
	// is the one that the migrations have made for this database.
	Namespace, Service string

	// LongestDeadline is the most that any effect gets, whose operation type may have less (docs/decisions/0018). 0: what its type has.
	LongestDeadline time.Duration

	// ApprovalTTL is how long a question to a person, and a yes to it, hold at most (Ask). Without it nobody can be asked.
	ApprovalTTL time.Duration

	// PollEvery is how often due effects are looked for without being told: the safety net below nudges, and how another
	// replica's effects are found.
	PollEvery time.Duration
}

// Outbox brings the effects of one service to their targets. Several replicas share one database.
type Outbox struct {
	db        *database.DB
	exec      *idempotency.Executor
	log       *slog.Logger
	record    func(tx database.Tx, events ...idempotency.Event) error
	longest   time.Duration // until a deadline
	ttl       time.Duration // of approvals
	namespace *namespace
	service   string
	pollEvery time.Duration
	targets   map[string]Target
	nudges    signal  // something may be due
	changed   signals // an operation was settled
	sends     *prometheus.CounterVec
}

// ErrNotServed means that this process has no target of that name. Nobody here could send the effect, ask about it, or settle it.
var ErrNotServed = errors.New("target is not served by this process")

// New makes an outbox for targets. Effects for others stay where they are.
func New(deps Deps, targets ...Target) (*Outbox, error) {
	if deps.PollEvery <= 0 {
		return nil, errors.New("configure outbox: it needs a time between looks for due effects")
	}
	o := &Outbox{
		db: deps.DB, exec: deps.Exec, log: deps.Log, record: deps.Record, longest: deps.LongestDeadline, ttl: deps.ApprovalTTL, pollEvery: deps.PollEvery,
		namespace: newNamespace(deps.Namespace), service: deps.Service,
		targets: map[string]Target{}, sends: newSends(deps.Service),
	}
	for _, t := range targets {
		if err := t.check(); err != nil {
			return nil, err
		}
		if o.longest > 0 && o.longest <= t.Timeout {
			return nil, fmt.Errorf("configure target %s: a deadline of %s has passed before a call of %s has ended", t.Name, o.longest, t.Timeout)
		}
		o.targets[t.Name] = t
	}
	return o, nil
}

// Enqueue writes an effect in the transaction that accepts its operation: queued, and due at once. name tells the effects of one key
// apart. ErrNotServed: nobody would bring it out. Call Nudge after the commit.
func (o *Outbox) Enqueue(tx database.Tx, op idempotency.Operation, target, name string, command []byte) error {
	return o.insertQueued(tx, op, target, name, command, &tx.Now)
}

func (o *Outbox) insertQueued(tx database.Tx, op idempotency.Operation, target, name string, command []byte, due *time.Time) error {
	if op.State != idempotency.Queued {
		return fmt.Errorf("enqueue effect: it can't begin in state %q", op.State)
	}
	e, _, err := o.newEffect(tx, op, target, name, command)
	if err != nil {
		return err
	}
	e.NextAt = due
	return insert(tx, e)
}

// newEffect is an effect as it is at its beginning, and its target.
func (o *Outbox) newEffect(tx database.Tx, op idempotency.Operation, target, name string, command []byte) (Effect, Target, error) {
	t, err := o.target(target)
	if err != nil {
		return Effect{}, Target{}, fmt.Errorf("enqueue effect: %w", err)
	}
	if !slices.Contains(t.Types, op.Type) {
		return Effect{}, Target{}, fmt.Errorf("enqueue effect: target %s says nothing of effects of %s", t.Name, op.Type)
	}
	namespace, err := o.namespace.of(tx)
	if err != nil {
		return Effect{}, Target{}, fmt.Errorf("enqueue effect: %w", err)
	}
	return Effect{
		AccountID: op.AccountID, ID: idempotency.NewID("eff", tx.Now), OperationID: op.ID, IdempotencyKey: op.IdempotencyKey, Type: op.Type,
		Target: target, EffectKey: Key(namespace, o.service, op.AccountID, op.IdempotencyKey, name),
		Command: command, State: op.State, Priority: catalogue.HasPriority(op.Type), Deadline: o.deadline(op.Type, tx.Now), CreatedAt: tx.Now, UpdatedAt: tx.Now,
	}, t, nil
}

func insert(tx database.Tx, e Effect) error {
	if err := tx.AtCommit().Create(&e).Error; err != nil {
		return fmt.Errorf("enqueue effect: %w", err)
	}
	return nil
}

// deadline is until when an effect that is accepted now is worth bringing out.
func (o *Outbox) deadline(operation string, now time.Time) *time.Time {
	entry, _ := catalogue.Lookup(operation) // which the target's types are in
	after := entry.Deadline()
	if o.longest > 0 {
		after = min(after, o.longest)
	}
	until := now.Add(after)
	return &until
}

// target is the one of that name.
func (o *Outbox) target(name string) (Target, error) {
	t, served := o.targets[name]
	if !served {
		return Target{}, fmt.Errorf("%w: %q", ErrNotServed, name)
	}
	return t, nil
}

// Nudge says that an effect may be due, or due soon: the one that has just been committed.
func (o *Outbox) Nudge() { o.nudges.broadcast() }

// Announce says that an operation may have ended: by a Cancel or a Decide that has just been committed. It wakes those who wait.
func (o *Outbox) Announce(operationID string) { o.changed.of(operationID).broadcast() }

// Settled returns a channel that is closed when this process settles something of an operation, for those who wait for it. Another
// replica may settle it, so they look by themselves as well.
func (o *Outbox) Settled(operationID string) <-chan struct{} { return o.changed.of(operationID).wait() }

// Run works until ctx ends. Then nothing new is taken, and what is under way ends and is settled.
func (o *Outbox) Run(ctx context.Context) {
	var running sync.WaitGroup
	running.Go(func() { o.warnOfUnserved(ctx) })
	running.Go(func() { o.watch(ctx) })
	for _, t := range o.targets {
		for _, l := range o.lanes(t) {
			running.Go(func() { o.run(ctx, l) })
		}
	}
	running.Wait()
}

// event is one about an effect, which has left the state from.
func (o *Outbox) event(tx database.Tx, e Effect, t idempotency.EventType, from idempotency.State) idempotency.Event {
	return o.becomes(tx, e, t, from, e.State, e.Reference)
}

// becomes is one about an effect that goes from a state to another.
func (o *Outbox) becomes(tx database.Tx, e Effect, t idempotency.EventType, from, to idempotency.State, reference string) idempotency.Event {
	return idempotency.Event{
		Type: t, At: tx.Now, Account: e.AccountID, Principal: "outbox", OperationID: e.OperationID, AttemptID: e.LeasedBy,
		KeyHash: e.IdempotencyKey.Hash(), EffectKey: e.EffectKey, Reference: reference, From: from, To: to,
	}
}

// find reads an effect as it is now.
func find(db *gorm.DB, e Effect) (*Effect, error) {
	var now Effect
	if err := rowOf(e, db).Take(&now).Error; err != nil {
		return nil, fmt.Errorf("read effect: %w", err)
	}
	return &now, nil
}

// hold reads an effect as it is now, and nobody else changes it until tx ends. Each step is a compare-and-set all the same; this is so that
// what is told of it, in events, in reviews and in the domain's rows, is about the very row that it changes.
func hold(tx database.Tx, e Effect) (*Effect, error) { return find(tx.Clauses(held), e) }

// held locks what is read. SQLite, where one transaction writes at a time, needs no lock, and its dialect writes none.
var held = clause.Locking{Strength: clause.LockingStrengthUpdate}
