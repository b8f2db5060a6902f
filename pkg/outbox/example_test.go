package outbox_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/einmal/einmal/migrations"
	"github.com/einmal/einmal/pkg/audit"
	"github.com/einmal/einmal/pkg/catalogue"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/outbox"
	"github.com/einmal/einmal/pkg/review"
)

// A desk opens the ticket, and its answer is lost. It is asked before anything is sent again, and finds it: one ticket.
func ExampleOutbox() {
	desk := &desk{answersLost: 1}
	s := newService(desk, outbox.Ability{Key: true, KeyWindow: time.Hour, Lookup: true})
	defer s.close()
	defer s.run()()

	op := s.accept("k-1")
	s.wait(op, func(op idempotency.Operation) bool { return op.State.Final() })
	fmt.Println(s.operation(op).State, "with", desk.tickets, "ticket after", desk.sends, "send")

	// Output:
	// succeeded with 1 ticket after 1 send
}

// The same at a desk that can't be asked: nobody knows whether the ticket is there, so nothing is sent again, and a person decides.
func ExampleOutbox_unknown() {
	desk := &desk{answersLost: 1}
	s := newService(desk, outbox.Ability{})
	defer s.close()
	defer s.run()()

	op := s.accept("k-1")
	s.wait(op, func(op idempotency.Operation) bool { return op.Effect.ReviewID != "" })
	fmt.Println(s.operation(op).State, "after", desk.sends, "send")

	questions, err := review.List(context.Background(), s.db, op.AccountID, review.Filter{State: review.StateOpen}, "", 10)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(questions[0].Evidence[0].Says)

	s.inTx(func(tx database.Tx) error { // somebody has looked at the desk
		return s.box.Decide(tx, op.AccountID, op.ID, idempotency.Succeeded, "D-1")
	})
	fmt.Println(s.operation(op).State)

	// Output:
	// unknown after 1 send
	// ambiguous after 1 send: no answer
	// succeeded
}

// What has certainly not been sent is canceled at once.
func ExampleOutbox_Cancel() {
	desk := &desk{}
	s := newService(desk, outbox.Ability{})
	defer s.close()

	op := s.accept("k-1") // no worker has begun yet
	s.inTx(func(tx database.Tx) error {
		e, err := s.box.Cancel(tx, op.AccountID, op.ID)
		fmt.Println(e.State, "after", desk.sends, "sends")
		return err
	})

	// Output:
	// canceled after 0 sends
}

// The key that the desk knows an effect by follows from the caller's key. A claim that a failover has forgotten, and that is made
// again, has another operation and the same effect key.
func ExampleKey() {
	before := outbox.Key("einmal", "tickets", "acme", "k-1", "mirror")
	after := outbox.Key("einmal", "tickets", "acme", "k-1", "mirror")
	fmt.Println(before == after)

	// Output:
	// true
}

// desk is a system outside that opens a ticket for every send with a key that it does not know.
type desk struct {
	answersLost    int
	sends, tickets int
	known          string // effect key of its ticket
}

func (d *desk) Send(_ context.Context, e outbox.Effect) outbox.Evidence {
	d.sends++
	if d.known != e.EffectKey {
		d.known = e.EffectKey
		d.tickets++
	}
	if d.sends <= d.answersLost {
		return outbox.Evidence{Finding: outbox.Ambiguous, Says: "no answer"}
	}
	return outbox.Evidence{Finding: outbox.Confirmed, Reference: "D-1"}
}

func (d *desk) Lookup(_ context.Context, e outbox.Effect) outbox.Evidence {
	if d.known == e.EffectKey {
		return outbox.Evidence{Finding: outbox.Confirmed, Reference: "D-1"}
	}
	return outbox.Evidence{Finding: outbox.NotFound}
}

func (d *desk) Close(context.Context, outbox.Effect) outbox.Evidence { panic("this desk can't close") }

// service is a service with one write, which has an effect at the desk.
type service struct {
	db    *database.DB
	exec  *idempotency.Executor
	box   *outbox.Outbox
	close func()
}

func newService(desk outbox.Provider, ability outbox.Ability) service {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "outbox")
	if err != nil {
		log.Fatal(err)
	}
	db, err := database.Open(ctx, "sqlite:"+filepath.Join(dir, "example.db"), database.Options{})
	if err == nil {
		err = migrations.Up(ctx, db, "tickets")
	}
	if err != nil {
		log.Fatal(err)
	}
	events := audit.Open(db)
	exec := idempotency.New(db, idempotency.Options{Record: events.Record, Note: events.Note, Describe: outbox.Describe(db)})
	// target:
	box, err := outbox.New(outbox.Deps{
		DB: db, Exec: exec, Log: slog.Default(), Record: events.Record, Namespace: "einmal", Service: "tickets", PollEvery: time.Second,
	}, outbox.Target{
		Name: "desk", Types: []string{catalogue.TicketMirror}, Ability: ability, Provider: desk,
		Settle: func(_ database.Tx, _ outbox.Effect, end outbox.End) (idempotency.Answer, error) {
			return idempotency.Answer{State: end.State, Status: 200, Body: []byte("{}")}, nil
		},
		Timeout: time.Second, Lease: 5 * time.Second, MaxAttempts: 5, MaxAsks: 5, AskEvery: 10 * time.Millisecond,
		Sends: outbox.Limit{Places: 4}, PrioritySends: outbox.Limit{Places: 1}, Asks: outbox.Limit{Places: 1},
	})
	// :target
	if err != nil {
		log.Fatal(err)
	}
	return service{db, exec, box, func() {
		events.Close()
		db.Close()
		os.RemoveAll(dir)
	}}
}

// run lets the outbox work, until what it returns is called.
func (s service) run() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { s.box.Run(ctx); close(done) }()
	return func() { cancel(); <-done }
}

// accept is the write: it claims, and enqueues the effect in the same transaction.
func (s service) accept(key idempotency.Key) idempotency.Operation {
	// accept:
	result, err := s.exec.Do(context.Background(), idempotency.Request{
		Key: key, Type: catalogue.TicketMirror,
		Command: idempotency.Command{Account: "acme", Method: "POST", Path: "/v1/tickets", Body: struct{}{}},
	}, func(tx database.Tx, op idempotency.Operation) (idempotency.Answer, error) {
		op.State = idempotency.Queued
		return idempotency.Answer{State: op.State}, s.box.Enqueue(tx, op, "desk", "mirror", []byte("{}"))
	})
	// :accept
	if err != nil {
		log.Fatal(err)
	}
	return result.Operation
}

// wait nudges, now that the claim is committed, and waits until the operation is as it should be.
func (s service) wait(op idempotency.Operation, until func(idempotency.Operation) bool) {
	s.box.Nudge()
	for {
		settled := s.box.Settled(op.ID)
		if until(s.operation(op)) {
			return
		}
		<-settled
	}
}

func (s service) operation(op idempotency.Operation) idempotency.Operation {
	op, err := s.exec.ByID(context.Background(), op.AccountID, op.ID)
	if err != nil {
		log.Fatal(err)
	}
	return op
}

func (s service) inTx(fn func(tx database.Tx) error) {
	if err := s.db.InTx(context.Background(), fn); err != nil {
		log.Fatal(err)
	}
}
