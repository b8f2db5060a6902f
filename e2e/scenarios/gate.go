package scenarios

import (
	"time"

	"github.com/einmal/einmal/e2e/faults"
)

// Gate stands between services and their database and can hold a write inside its transaction: claimed by its caller, not yet committed.
//
// On PostgreSQL a proxy holds the COMMIT. On SQLite nothing stands between a process and its file, so the write lock is taken from outside: the
// attempt has begun, and its transaction waits for the lock, but no longer than a service waits for locks (2 s).
type Gate struct {
	URL string // where services find their database

	stage *Stage
	proxy *faults.PostgresProxy
	trap  *faults.CommitTrap
	lock  *faults.SQLiteLock
}

// arrivesWithin is how long a request takes at most from its caller to the door of the database. On SQLite nothing outside the process shows that
// it is there.
const arrivesWithin = 300 * time.Millisecond

// Gate makes a gate. On SQLite a service must have made the database before Hold.
func (s *Stage) Gate() *Gate {
	if s.SQLite() {
		return &Gate{stage: s, URL: s.db.URL}
	}
	proxy, through := s.PostgresProxy()
	return &Gate{stage: s, URL: through, proxy: proxy}
}

// Hold lets the next creation of a ticket be held.
func (g *Gate) Hold() {
	if g.proxy == nil {
		g.lock = g.stage.LockSQLite()
		return
	}
	g.trap = g.proxy.AtCommit(faults.HoldCommit, "INTO tickets")
}

// AwaitHeld waits until a creation is held.
func (g *Gate) AwaitHeld() {
	if g.proxy != nil {
		g.stage.Sprung(g.trap)
		return
	}
	select {
	case <-time.After(arrivesWithin):
	case <-g.stage.ctx.Done():
	}
}

// Release lets the held creation go on.
func (g *Gate) Release() {
	if g.proxy != nil {
		g.trap.Release()
		return
	}
	g.stage.must(g.lock.Release())
}
