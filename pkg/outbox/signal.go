package outbox

import (
	"hash/maphash"
	"sync"
)

// signal wakes whoever listens, in this process. It carries nothing: who is woken looks for himself.
type signal struct {
	mu   sync.Mutex
	next chan struct{}
}

// broadcast wakes all that wait.
func (s *signal) broadcast() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next != nil {
		close(s.next)
		s.next = nil
	}
}

// wait returns a channel that the next broadcast closes. Called before looking, it misses nothing that happens after the look.
func (s *signal) wait() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil {
		s.next = make(chan struct{})
	}
	return s.next
}

// signals are one for each operation, nearly: some share one, and are woken for nothing. With one for all, each operation that ends
// would have everybody look who waits for another (measured: 300 who wait took a service seven times as long for its tickets).
type signals [256]signal

var signalSeed = maphash.MakeSeed()

func (s *signals) of(operationID string) *signal {
	return &s[maphash.String(signalSeed, operationID)%uint64(len(s))]
}
