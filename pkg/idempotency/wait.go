package idempotency

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
)

// flights are the attempts that are inside their transaction in this process, one per operation. Duplicates wait here, in
// memory: a duplicate that waited inside the database would hold a connection, and a few dozen of them would hold all
// (measured: 64 duplicates of one slow write cut unrelated traffic to a twentieth).
type flights struct {
	mu   sync.Mutex
	open map[identity]*flight
}

// flight is the one attempt of an operation that may open a transaction.
type flight struct {
	fingerprint Fingerprint
	won         chan struct{} // closed when it has inserted the claim: until then another process's command may be the first
	done        chan struct{} // closed when it has ended, however it ended
	winning     sync.Once
}

// win says that the flight has inserted the claim.
func (f *flight) win() { f.winning.Do(func() { close(f.won) }) }

// enter makes a the flight of its operation, or returns the one there is.
func (f *flights) enter(a *attempt) (first *flight, mine bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if first, ok := f.open[a.identity]; ok {
		return first, false
	}
	if f.open == nil {
		f.open = map[identity]*flight{}
	}
	first = &flight{fingerprint: a.fingerprint, won: make(chan struct{}), done: make(chan struct{})}
	a.flight = first
	f.open[a.identity] = first
	return first, true
}

// leave ends a's flight and wakes those that wait for it.
func (f *flights) leave(a *attempt) {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.open[a.identity].done)
	delete(f.open, a.identity)
}

// doubts are the operations of this process whose COMMIT got no answer, until one of them is seen committed. Nothing may make it
// forget one: a later attempt that finds the database out of reach would tell its caller that nothing was done. Each lost answer adds
// one at most, and only connections that die between COMMIT and its answer lose one, so it needs no bound.
type doubts struct {
	mu   sync.Mutex
	open map[identity]struct{}
}

func (d *doubts) add(id identity) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open == nil {
		d.open = map[identity]struct{}{}
	}
	d.open[id] = struct{}{}
}

func (d *doubts) settle(id identity) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.open, id)
}

func (d *doubts) has(id identity) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, open := d.open[id]
	return open
}

// recent remembers which operations this process has lately seen committed, so that a retry reads before it tries to claim: one
// read where a lost claim costs a transaction. What it forgets, because another operation came to stand in its place, costs a
// statement; and an attempt that meets a database out of reach then says of itself only, and truly, that it did nothing.
type recent [recentSize]atomic.Uint64

// recentSize is 512 KiB of hashes: minutes of a busy process, which is when clients retry.
const recentSize = 1 << 16

var recentSeed = maphash.MakeSeed()

func (r *recent) add(id identity) {
	h := maphash.Comparable(recentSeed, id)
	r[h%recentSize].Store(h)
}

func (r *recent) has(id identity) bool {
	h := maphash.Comparable(recentSeed, id)
	return r[h%recentSize].Load() == h
}
