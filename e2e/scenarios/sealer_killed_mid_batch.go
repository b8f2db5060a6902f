package scenarios

import (
	"strconv"
	"time"

	"github.com/einmal/einmal/e2e/faults"
	"github.com/einmal/einmal/e2e/harness"
)

var sealerKilledMidBatch = Scenario{
	Name:    "sealer_killed_mid_batch",
	Promise: "A process killed while it seals leaves a log that is whole: every event is sealed once, by the next that comes.",
	Injects: true,
	run: func(s *Stage) (effects int) {
		if s.SQLite() {
			effects = s.killSealerAtSyncs()
		} else {
			effects = s.killSealerAtCommits()
		}
		effects += s.killSealerAtRandom()
		s.AwaitSealed()
		leaves, distinct := s.Count("SELECT count(*) FROM leaves"), s.Count("SELECT count(DISTINCT leaf_index) FROM leaves")
		s.Check(leaves == distinct, "%d leaves have %d indexes", leaves, distinct)
		return effects
	},
}

// sealing is often enough that a batch is under way at nearly any moment.
const sealing = 10 * time.Millisecond

// killSealerAtCommits kills a process with the COMMIT of a batch on its way, and cuts another's connection when PostgreSQL has committed one.
func (s *Stage) killSealerAtCommits() (effects int) {
	proxy, through := s.PostgresProxy()
	for _, fault := range []faults.CommitFault{faults.HoldCommit, faults.CutAfterCommit, faults.CutBeforeCommit} {
		service := s.ServeSealing(through, "", sealing)
		trap := proxy.AtCommit(fault, "INTO segments")
		s.Executed("a creation", s.Create(service.URL(), s.NewKey(), s.NewTicket().JSON()))
		effects++
		s.Sprung(trap)
		s.Kill(service)
		trap.Release()
		s.must(s.db.AuditVerify(s.ctx))
	}
	return effects
}

// killSealerAtSyncs kills processes at one after another of the syncs to the file, and those of what is outside it: while they seal more often than they
// do anything else.
func (s *Stage) killSealerAtSyncs() (effects int) {
	if !faults.CanTrace() {
		s.Notef("no strace here: kills at random moments only")
		return 0
	}
	s.must(s.Serve("").Terminate()) // makes the database
	for nth := 2; nth <= 9; nth++ {
		service, err := s.lab.Serve(s.ctx, harness.Settings{
			Role: "tickets", DatabaseURL: s.db.URL, Env: []string{"EINMAL_SEAL_EVERY=" + sealing.String()},
			Under: faults.AtSyscall{Syscalls: faults.Sync, Do: "signal=KILL", Nth: strconv.Itoa(nth)}.Prefix(),
		})
		if err != nil { // killed before it was ready
			s.Struck()
			continue
		}
		s.services = append(s.services, service)
		key, body := s.NewKey(), s.NewTicket().JSON()
		first := s.Create(service.URL(), key, body)
		if first.Err == nil {
			service.AwaitEnd(time.Second)
		}
		if service.Ended() {
			s.Struck()
			s.must(service.Kill())
		}
		s.must(s.db.AuditVerify(s.ctx))
		if !service.Ended() {
			s.Kill(service)
		}
		service.Under()
		s.must(service.Start(s.ctx))
		s.Settled("the same key", s.Insist(service.URL(), key, body))
		s.must(service.Terminate())
		effects++
	}
	return effects
}

// killSealerAtRandom kills a process whenever, while it takes writes and seals them.
func (s *Stage) killSealerAtRandom() (effects int) {
	service := s.ServeSealing(s.db.URL, "", sealing)
	for range 5 {
		for range 5 {
			s.Executed("a creation", s.Create(service.URL(), s.NewKey(), s.NewTicket().JSON()))
			effects++
		}
		for range 1 + s.rand.IntN(8) {
			s.Moment()
		}
		s.Kill(service)
		s.must(s.db.AuditVerify(s.ctx))
		s.must(service.Start(s.ctx))
	}
	return effects
}
