package scenarios

import (
	"net/http"
	"strconv"

	"github.com/einmal/einmal/e2e/faults"
	"github.com/einmal/einmal/e2e/harness"
)

var killedBeforeCommit = Scenario{
	Name:    "killed_before_commit",
	Promise: "A process killed before its commit leaves nothing: no ticket, no key that is stuck; the retry executes, once.",
	Injects: true,
	run: func(s *Stage) int {
		tickets := 0
		if s.SQLite() {
			tickets += s.killAtWrites()
		} else {
			tickets += s.killAtHeldCommit()
		}
		return tickets + s.killAtRandom()
	},
}

// killAtHeldCommit kills a process whose COMMIT is on its way.
func (s *Stage) killAtHeldCommit() int {
	gate := s.Gate()
	service, other := s.Serve(gate.URL), s.Serve("")
	keys := []string{s.NewKey(), s.NewKey()}
	body := s.NewTicket().JSON()
	for _, key := range keys {
		gate.Hold()
		sent := s.Send(service.URL(), key, body)
		gate.AwaitHeld()
		s.Kill(service)
		s.Check(sent.Answer().Err != nil, "a killed process answered")
		s.Check(s.TicketsOf(key) == 0, "a ticket was stored without its commit")
		s.Problem("the operation of the key", s.OperationOf(other.URL(), key), http.StatusNotFound, "operation-not-found")
		if key == keys[0] { // the retry may come to another replica, or to the same one when it is back
			s.Executed("the retry at another replica", s.Insist(other.URL(), key, body))
			s.must(service.Start(s.ctx))
			continue
		}
		s.must(service.Start(s.ctx))
		s.Executed("the retry after the restart", s.Insist(service.URL(), key, body))
	}
	for _, key := range keys {
		s.Check(s.TicketsOf(key) == 1, "%d tickets, want 1", s.TicketsOf(key))
	}
	s.Notef("%d processes were killed with their COMMIT on its way", len(keys))
	return len(keys)
}

// killAtWrites kills processes at the Nth write to SQLite's file, for growing N: while they open it, and at one after another of the writes of a
// transaction, the last of which is its commit.
func (s *Stage) killAtWrites() int {
	if !faults.CanTrace() {
		s.Notef("no strace here, so no kill could be aimed at a write")
		return 0
	}
	const last, step = 25, 2 // a start takes eight writes and the transaction of a ticket seventeen
	atStart, atCommit, tickets := 0, 0, 0
	s.must(s.Serve("").Terminate()) // makes the database
	for nth := 1; nth <= last; nth += step {
		strike := faults.AtSyscall{Syscalls: faults.Write, Do: "signal=KILL", Nth: strconv.Itoa(nth)}
		service, started := s.ServeStruck(strike)
		if !started {
			atStart++
			continue
		}
		key, body := s.NewKey(), s.NewTicket().JSON()
		first := s.Create(service.URL(), key, body)
		if first.Err != nil {
			s.Check(service.Killed(), "the service gave no answer and was not killed: %v", first)
			s.Struck()
			atCommit++
			s.Check(s.TicketsOf(key) == 0, "a ticket was stored before the last write (killed at write %d)", nth)
		}
		s.retryAfterRestart(service, first, key, body)
		tickets++
	}
	s.Check(atCommit > 0, "no write of a transaction was met")
	s.Notef("%d processes were killed at a write as they opened the file, %d at a write of a transaction", atStart, atCommit)
	return tickets
}

// retryAfterRestart restarts a service that may have been struck, without anything in front of it, and retries what it was asked for first.
func (s *Stage) retryAfterRestart(service *harness.Service, first harness.Answer, key, body string) {
	stored := s.TicketsOf(key) == 1
	_ = service.Terminate() // it may be struck as it closes its file, which is a kill like any other
	service.Under()
	s.must(service.Start(s.ctx))
	last := s.Insist(service.URL(), key, body)
	s.checkRetry(first, last, stored)
	s.Check(s.TicketsOf(key) == 1, "%d tickets, want 1", s.TicketsOf(key))
	s.must(service.Terminate())
}

// killAtRandom kills processes at random moments of a request, and retries until the answer is final.
func (s *Stage) killAtRandom() int {
	kills := 6
	if s.SQLite() && !faults.CanTrace() {
		kills = 20 // in place of aimed ones
	}
	before := 0
	service := s.Serve("")
	for range kills {
		key, body := s.NewKey(), s.NewTicket().JSON()
		sent := s.Send(service.URL(), key, body)
		s.Moment()
		s.Kill(service)
		first := sent.Answer()
		stored := s.TicketsOf(key)
		s.Check(stored <= 1 && (first.Err != nil || stored == 1), "%d tickets after the answer %v", stored, first)
		s.must(service.Start(s.ctx))
		last := s.Insist(service.URL(), key, body)
		if first.Err != nil && stored == 0 && last.Outcome() == "replayed" {
			stored = 1 // PostgreSQL had the COMMIT, and was still at it when we looked
		}
		s.checkRetry(first, last, stored == 1)
		s.Check(s.TicketsOf(key) == 1, "%d tickets, want 1", s.TicketsOf(key))
		before += 1 - stored
	}
	s.Notef("%d at random moments, %d of them before the commit", kills, before)
	return kills
}

// checkRetry compares a retry with what the first attempt left: its answer if it got one, its commit if not.
func (s *Stage) checkRetry(first, last harness.Answer, committed bool) {
	switch {
	case first.Err == nil:
		s.Replayed("the retry of an answered request", last, first)
	case committed:
		s.Check(last.Outcome() == "replayed", "the retry of a committed request got %v, want a replay", last)
	default:
		s.Executed("the retry of a request that left nothing", last)
	}
}
