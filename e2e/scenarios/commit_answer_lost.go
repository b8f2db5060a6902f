package scenarios

import (
	"strconv"

	"github.com/einmal/einmal/e2e/faults"
)

var commitAnswerLost = Scenario{
	Name:    "commit_answer_lost",
	Promise: "A commit that nobody was told of is neither repeated nor reported as a failure: the same key finds it.",
	Injects: true,
	run: func(s *Stage) int {
		if s.SQLite() {
			return s.killAtSync()
		}
		return s.loseCommitAnswers()
	},
}

// loseCommitAnswers cuts the connection to PostgreSQL when it has committed and before it can say so.
func (s *Stage) loseCommitAnswers() int {
	proxy, through := s.PostgresProxy()
	service := s.Serve(through)

	// The database is within reach: the service finds out by itself, by claiming again.
	key, body := s.NewKey(), s.NewTicket().JSON()
	trap := proxy.AtCommit(faults.CutAfterCommit, "INTO tickets")
	answer := s.Create(service.URL(), key, body)
	s.Sprung(trap)
	s.Executed("an attempt whose COMMIT got no answer", answer)
	s.Replayed("its retry", s.Create(service.URL(), key, body), answer)

	// It is not: the caller is told that nobody knows, and what to do.
	lost, body := s.NewKey(), s.NewTicket().JSON()
	trap = proxy.AtCommit(faults.LoseServerAtCommit, "INTO tickets")
	answer = s.Create(service.URL(), lost, body)
	s.Sprung(trap)
	s.Unavailable("an attempt whose COMMIT got no answer while the database is away", answer, "unknown")
	s.Check(s.TicketsOf(lost) == 1, "the lost COMMIT stored %d tickets, want 1", s.TicketsOf(lost))
	proxy.Accept()
	found := s.Insist(service.URL(), lost, body)
	s.Check(found.Outcome() == "replayed" && found.Status == 201, "the retry got %v, want a replay", found)
	for _, key := range []string{key, lost} {
		s.Check(s.TicketsOf(key) == 1, "%d tickets, want 1", s.TicketsOf(key))
	}
	s.Notef("one lost COMMIT was found by the service itself, one by the retry after 503 with effect unknown")
	return 2
}

// killAtSync kills a process when its transaction is written to the file, committed for everyone who reads it, and nobody has been told.
func (s *Stage) killAtSync() int {
	if !faults.CanTrace() {
		s.Notef("no strace here: kills at random moments instead")
		return s.killAtRandom()
	}
	s.must(s.Serve("").Terminate()) // makes the database
	// The first syncs make the log itself last; one of the next is the commit's. strace counts those of each thread, and on a busy machine
	// they come from several, so a round may miss it.
	const most, rounds = 6, 4
	for try := range most * rounds {
		strike := faults.AtSyscall{Syscalls: faults.Sync, Do: "signal=KILL", Nth: strconv.Itoa(try%most + 1)}
		service, started := s.ServeStruck(strike)
		s.Check(started, "the service was killed at a sync while it started")
		key, body := s.NewKey(), s.NewTicket().JSON()
		first := s.Create(service.URL(), key, body)
		committed := first.Err != nil && s.TicketsOf(key) == 1
		if first.Err != nil {
			s.Check(service.Killed(), "the service gave no answer and was not killed: %v", first)
			s.Struck()
		}
		s.retryAfterRestart(service, first, key, body)
		if committed {
			s.Notef("%d processes were killed at a sync, the last one between its commit and the answer", s.strikes)
			return try + 1
		}
	}
	s.Failf("none of %d tries came between a commit and its answer", most*rounds)
	return 0
}
