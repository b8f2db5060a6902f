package scenarios

import (
	"net/http"
	"time"

	"github.com/einmal/einmal/e2e/faults"
	"github.com/einmal/einmal/e2e/harness"
)

var frozenClaimant = Scenario{
	Name:    "frozen_claimant",
	Promise: "A process frozen inside its claim holds the key for seconds, not for ever, and makes no second ticket when it goes on.",
	Injects: true,
	run: func(s *Stage) int {
		if s.SQLite() {
			return s.freezeTheWriter()
		}
		return s.freezeInsideTransaction()
	},
}

// freezeInsideTransaction freezes a process between its claim and its COMMIT. PostgreSQL ends a transaction that is idle for 10 s.
func (s *Stage) freezeInsideTransaction() int {
	proxy, through := s.PostgresProxy()
	claimant, other := s.Serve(through), s.Serve("")
	key, body := s.NewKey(), s.NewTicket().JSON()

	held := proxy.AtCommit(faults.HoldCommit, "INTO tickets")
	frozen := s.Send(claimant.URL(), key, body)
	s.Sprung(held)
	s.Freeze(claimant)
	since := time.Now()
	s.inProgress("the retry at another replica", s.Send(other.URL(), key, body))
	created := s.Insist(other.URL(), key, body)
	freed := time.Since(since)
	s.Executed("the retry once PostgreSQL gave the key free", created)
	const longest = 15 * time.Second // PostgreSQL's 10 s and a busy machine
	s.Check(freed < longest, "the key was held for %v, want less than %v", freed, longest)

	held.Release()
	s.must(claimant.Thaw())
	late := frozen.Answer()
	if late.Err == nil && late.Status == http.StatusCreated {
		s.Replayed("the frozen attempt", late, created)
	} else {
		s.Problem("the frozen attempt", late, http.StatusServiceUnavailable, "store-unavailable")
	}
	s.Replayed("a retry at the process that was frozen", s.Insist(claimant.URL(), key, body), created)
	s.Check(s.TicketsOf(key) == 1, "%d tickets, want 1", s.TicketsOf(key))
	s.Notef("the key was free after %.1f s; the frozen attempt went on and got %d", freed.Seconds(), late.Status)
	return 1
}

// freezeTheWriter freezes a process while it holds SQLite's write lock. There is one writer, so nobody writes until it goes on.
func (s *Stage) freezeTheWriter() int {
	claimant, other := s.Serve(""), s.Serve("")
	sent, key, body, attempts := s.freezeWithLock(claimant)

	blocked, blockedBody := s.NewKey(), s.NewTicket().JSON()
	s.Unavailable("the retry at another replica", s.Create(other.URL(), key, body), "none")
	s.Unavailable("another ticket", s.Create(other.URL(), blocked, blockedBody), "none")
	list := s.Do(harness.Call{Base: other.URL(), Method: http.MethodGet, Path: "/v1/tickets"})
	s.Check(list.Status == http.StatusOK, "reading while the writer is frozen: got %v, want 200", list)

	s.must(claimant.Thaw())
	created := sent.Answer()
	s.Executed("the frozen attempt", created)
	s.Replayed("its retry at another replica", s.Insist(other.URL(), key, body), created)
	s.Executed("the other ticket", s.Insist(other.URL(), blocked, blockedBody))
	s.Check(s.TicketsOf(key) == 1, "%d tickets, want 1", s.TicketsOf(key))
	s.Notef("while SQLite's one writer was frozen, writes got 503 and reads went on (it held the lock at attempt %d)", attempts)
	return attempts + 1
}

// freezeWithLock freezes the service at random moments of a request until it is one at which it holds the write lock. Every attempt makes a ticket.
func (s *Stage) freezeWithLock(service *harness.Service) (sent *Sent, key, body string, attempts int) {
	for attempts = 1; s.ctx.Err() == nil; attempts++ {
		key, body = s.NewKey(), s.NewTicket().JSON()
		sent = s.Send(service.URL(), key, body)
		s.Moment()
		s.Freeze(service)
		s.Await("the service is frozen", service.Frozen)
		locked, err := s.db.WriteLocked(s.ctx)
		s.must(err)
		if locked {
			return sent, key, body, attempts
		}
		s.must(service.Thaw())
		s.Settled("an attempt that was frozen elsewhere", sent.Answer())
	}
	s.Failf("the service was never frozen with the write lock")
	return
}
