package idemtest

import (
	"context"
	"crypto/rand"
	"sync"
	"sync/atomic"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

// work is what operations of the suite do. It counts how often it was run.
type work struct{ runs atomic.Int64 }

// apply leaves one effect and succeeds.
func (w *work) apply(tx database.Tx, op idempotency.Operation) (idempotency.Answer, error) {
	return w.ending(func(database.Tx, idempotency.Operation) (idempotency.Answer, error) { return created(), nil })(tx, op)
}

// ending leaves one effect and ends in another way.
func (w *work) ending(end idempotency.Apply) idempotency.Apply {
	return func(tx database.Tx, op idempotency.Operation) (idempotency.Answer, error) {
		w.runs.Add(1)
		err := tx.Exec("INSERT INTO idemtest_effects (account_id, id, idempotency_key, operation_id) VALUES (?, ?, ?, ?)",
			op.AccountID, idempotency.NewID("eff", tx.Now), op.IdempotencyKey, op.ID).Error
		if err != nil {
			return idempotency.Answer{}, err
		}
		return end(tx, op)
	}
}

// answering leaves one effect and gives an answer.
func (w *work) answering(answer idempotency.Answer) idempotency.Apply {
	return w.ending(func(database.Tx, idempotency.Operation) (idempotency.Answer, error) { return answer, nil })
}

// failing leaves one effect and fails.
func (w *work) failing(err error) idempotency.Apply {
	return w.ending(func(database.Tx, idempotency.Operation) (idempotency.Answer, error) { return idempotency.Answer{}, err })
}

// created is a final answer. No two are equal, so that no execution can pass for another.
func created() idempotency.Answer {
	id := rand.Text()
	return idempotency.Answer{
		State: idempotency.Succeeded, Status: 201, Location: "/v1/things/" + id, Body: []byte(`{"id":"` + id + `"}` + "\n"),
		Resource: idempotency.Resource{Type: "thing", ID: id, Href: "/v1/things/" + id},
	}
}

// refused is the final answer of a business that says no.
func refused() idempotency.Answer {
	return idempotency.Answer{State: idempotency.Failed, Status: 409, Body: []byte(`{"code":"no-` + rand.Text() + `"}`)}
}

// gate is a piece of work that begins and is then held until it may end.
type gate struct {
	begun, open chan struct{}
	once        sync.Once
}

func newGate() *gate { return &gate{begun: make(chan struct{}), open: make(chan struct{})} }

// hold tells that the work has begun and waits for release.
func (g *gate) hold() {
	g.once.Do(func() { close(g.begun) })
	<-g.open
}

func (g *gate) release() { close(g.open) }

// watched is a context that tells when somebody begins to wait for its end: a duplicate that waits for the first attempt.
type watched struct {
	context.Context
	waits chan struct{}
	once  *sync.Once
}

func watch(ctx context.Context) watched {
	return watched{ctx, make(chan struct{}), new(sync.Once)}
}

func (w watched) Done() <-chan struct{} {
	w.once.Do(func() { close(w.waits) })
	return w.Context.Done()
}
