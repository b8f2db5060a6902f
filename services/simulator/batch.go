package simulator

import (
	"context"
	"errors"
	"time"

	"github.com/einmal/einmal/pkg/database"
)

const (
	// maxBatch bounds how long the first of a batch waits for the last: 64 requests take some 20 ms.
	maxBatch = 64

	// workTimeout bounds a batch. It takes milliseconds.
	workTimeout = 10 * time.Second
)

// batches runs the work of requests, one after the other, in transactions that each hold all that was waiting. A commit costs
// a flush of the disk however much it holds, and the outside world must not be what a measurement is limited by.
//
// Work does not depend on the connection of the request that it is for.
type batches struct {
	db   *database.DB
	jobs chan job
	quit chan struct{}
}

type job struct {
	work func(tx database.Tx) error
	done chan error
}

// errStopped: the simulator ended before the work was begun.
var errStopped = errors.New("simulator stopped")

// do runs work in a transaction and returns when that has ended. work may be run more than once; what it leaves in variables
// is that of the last time. An error says that nothing was committed, unless it is database.ErrCommitUnknown.
func (b *batches) do(work func(tx database.Tx) error) error {
	j := job{work, make(chan error, 1)}
	select {
	case b.jobs <- j:
		return <-j.done
	case <-b.quit:
		return errStopped
	}
}

// run works until quit is closed.
func (b *batches) run() {
	for {
		select {
		case first := <-b.jobs:
			b.runAll(b.waiting(first))
		case <-b.quit:
			return
		}
	}
}

func (b *batches) waiting(first job) []job {
	batch := []job{first}
	for len(batch) < maxBatch {
		select {
		case next := <-b.jobs:
			batch = append(batch, next)
		default:
			return batch
		}
	}
	return batch
}

func (b *batches) runAll(batch []job) {
	err := b.inTx(batch...)
	// One that fails undoes all. Alone, only it fails. What may have been committed must not be done again.
	alone := err != nil && !errors.Is(err, database.ErrCommitUnknown) && len(batch) > 1
	for _, j := range batch {
		if alone {
			err = b.inTx(j)
		}
		j.done <- err
	}
}

func (b *batches) inTx(jobs ...job) error {
	ctx, cancel := context.WithTimeout(context.Background(), workTimeout)
	defer cancel()
	return b.db.InTx(ctx, func(tx database.Tx) error {
		for _, j := range jobs {
			if err := j.work(tx); err != nil {
				return err
			}
		}
		return nil
	})
}
