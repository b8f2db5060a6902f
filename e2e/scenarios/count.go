package scenarios

import (
	"context"
	"time"

	"github.com/einmal/einmal/services/simulator"
)

// Count counts rows in the database, behind the services' backs. Arguments are $1, $2 … .
func (s *Stage) Count(query string, args ...any) int {
	n, err := s.db.Count(s.ctx, query, args...)
	s.must(err)
	return n
}

// Text reads a text from the database, likewise.
func (s *Stage) Text(query string, args ...any) string {
	text, err := s.db.Text(s.ctx, query, args...)
	s.must(err)
	return text
}

// TicketsOf is how many tickets the operation of a key has made, in every account.
func (s *Stage) TicketsOf(key string) int {
	return s.Count("SELECT count(*) FROM tickets t JOIN operations o ON o.account_id = t.account_id AND o.id = t.operation_id WHERE o.idempotency_key = $1", key)
}

// effects is how many effects there are, for the results, and where: -1 if they can't be counted.
func (s *Stage) effects() (n int, where string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), 5*time.Second) // the scenario's time may be up
	defer cancel()
	var err error
	if s.world != nil {
		var ledger []simulator.Effect
		err = s.world.get(ctx, "/_ledger", &ledger)
		n, where = len(ledger), "effects are in the "+s.world.target+"'s ledger"
	} else {
		n, err = s.db.Count(ctx, "SELECT count(*) FROM tickets")
		where = "tickets are in the database"
	}
	if err != nil {
		return -1, where
	}
	return n, where
}

// injected is how many faults have happened.
func (s *Stage) injected() int {
	n := s.strikes
	for _, counter := range s.counters {
		n += counter.Fired()
	}
	return n
}
