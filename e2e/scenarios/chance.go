package scenarios

import (
	"hash/fnv"
	"math/rand/v2"
	"sync"
)

// chance is what a scenario draws at random, which follows from the seed and its name: it draws the same with and without the
// others. Callers at once draw from it, too.
func chance(seed uint64, scenario string) *rand.Rand {
	hash := fnv.New64()
	hash.Write([]byte(scenario))
	return rand.New(&source{of: rand.NewPCG(seed, hash.Sum64())})
}

// source is a source of random numbers that may be used by several goroutines at once. A rand.Rand holds nothing else.
type source struct {
	mu sync.Mutex
	of *rand.PCG
}

// Uint64 implements rand.Source.
func (s *source) Uint64() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of.Uint64()
}
