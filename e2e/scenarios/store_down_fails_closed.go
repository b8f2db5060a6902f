package scenarios

import (
	"net/http"

	"github.com/einmal/einmal/e2e/faults"
	"github.com/einmal/einmal/e2e/harness"
	"github.com/einmal/einmal/e2e/record"
)

var storeDownFailsClosed = Scenario{
	Name:    "store_down_fails_closed",
	Promise: "Without its database a service refuses with 503 and executes nothing; the same key executes once the database is back.",
	Injects: true,
	Alone:   true,
	run: func(s *Stage) int {
		if s.SQLite() {
			return s.lockTheFile() + s.fillTheDisk()
		}
		return s.cutOffTheServer() + s.stopTheServer()
	},
}

// cutOffTheServer cuts all connections to PostgreSQL and lets no new one through.
func (s *Stage) cutOffTheServer() int {
	proxy, through := s.PostgresProxy()
	service := s.Serve(through)
	known := s.Create(service.URL(), "known", s.NewTicket().JSON())
	s.Executed("before the fault", known)

	proxy.Refuse()
	s.Await("the service says that it is not ready", func() bool { return !s.ready(service) })
	retry := s.refusedWhileAway(service, "none")
	proxy.Accept()
	s.Await("the service is ready again", func() bool { return s.ready(service) })
	retry(service)
	s.Notef("503 and nothing stored while PostgreSQL was cut off")
	return 2
}

// stopTheServer shuts PostgreSQL down, if it is ours to shut down.
func (s *Stage) stopTheServer() int {
	if !s.lab.Server.Ours() {
		s.Notef("the server is not ours to stop")
		return 0
	}
	service := s.Serve("")
	s.recordServer(record.Struck, "shut down")
	s.must(s.lab.Server.Halt())
	s.Struck()
	defer s.lab.Server.Resume(s.ctx) //nolint:errcheck // only where the scenario has failed already
	retry := s.refusedWhileAway(service, "none")
	s.must(s.lab.Server.Resume(s.ctx))
	s.recordServer(record.Healed, "started again")
	s.Await("the service is ready again", func() bool { return s.ready(service) })
	retry(service)
	s.Notef("and while it was shut down")
	return 1
}

// lockTheFile holds SQLite's write lock for longer than the service waits for it.
func (s *Stage) lockTheFile() int {
	service := s.Serve("")
	lock := s.LockSQLite()
	retry := s.refusedWhileAway(service, "none")
	s.must(lock.Release())
	retry(service)
	s.Notef("503 and nothing stored while the file was locked by another process")
	return 1
}

// fillTheDisk lets every write to SQLite's file fail.
func (s *Stage) fillTheDisk() int {
	if !faults.CanTrace() {
		s.Notef("no strace here, so the disk was not full")
		return 0
	}
	keeper := s.Serve("") // has the file open, so that the other one need not write to open it
	service, started := s.ServeStruck(faults.AtSyscall{Syscalls: faults.Write, Do: "error=ENOSPC", Nth: "1+"})
	s.Check(started, "the service did not start on a full disk")
	// SQLite finds the disk full in the middle of its COMMIT. A service can't know how far that came, and says so.
	retry := s.refusedWhileAway(service, "unknown")
	s.Struck()
	s.must(service.Kill())
	service.Under()
	s.must(service.Start(s.ctx))
	retry(service)
	s.must(keeper.Terminate())
	s.Notef("and while the disk was full")
	return 1
}

// refusedWhileAway sends a creation that must be refused, saying this of its effect, and returns how to retry it.
func (s *Stage) refusedWhileAway(service *harness.Service, effect string) (retry func(*harness.Service)) {
	key, body := s.NewKey(), s.NewTicket().JSON()
	for range 2 {
		s.Unavailable("a creation without a database", s.Create(service.URL(), key, body), effect)
	}
	return func(service *harness.Service) {
		s.Check(s.TicketsOf(key) == 0, "something was stored without a database")
		created := s.Insist(service.URL(), key, body)
		s.Executed("the same key with the database back", created)
		s.Replayed("and once more", s.Create(service.URL(), key, body), created)
		s.Check(s.TicketsOf(key) == 1, "%d tickets, want 1", s.TicketsOf(key))
	}
}

func (s *Stage) ready(service *harness.Service) bool {
	return harness.Do(s.ctx, harness.Call{Base: service.URL(), Method: http.MethodGet, Path: "/readyz"}).Status == http.StatusOK
}
