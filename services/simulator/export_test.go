package simulator

import "github.com/einmal/einmal/pkg/database"

// NewBatches starts what runs the work of requests; quit ends it.
func NewBatches(db *database.DB) (do func(work func(tx database.Tx) error) error, quit func()) {
	b := &batches{db: db, jobs: make(chan job), quit: make(chan struct{})}
	go b.run()
	return b.do, func() { close(b.quit) }
}

// RecordEffect writes to the ledger.
func RecordEffect(tx database.Tx, e Effect) error { return e.record(tx) }
