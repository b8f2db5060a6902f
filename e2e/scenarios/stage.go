package scenarios

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"time"

	"github.com/einmal/einmal/e2e/faults"
	"github.com/einmal/einmal/e2e/harness"
	"github.com/einmal/einmal/e2e/record"
	"github.com/einmal/einmal/pkg/database"
)

// Stage is what a scenario plays on. A method that finds something not as it must be ends the scenario, or changes what it has counted: those are for
// the scenario's own goroutine only. Callers at once use what only sends (Do, Create, Insist, Comment, SetStatus; Till.Ask and Put, Yard.Ask) and Moment.
type Stage struct {
	ctx      context.Context
	scenario string // its name
	lab      *harness.Lab
	db       *harness.Database
	rand     *rand.Rand

	impossible bool   // Scenario.Impossible
	part       string // what is being played, for messages; empty: the whole
	keys       int
	secrets    []string    // keys and texts of bodies that were made up here, which nothing may tell
	problems   problems    // that services have answered with
	world      *Outside    // what is outside; nil until there is something
	desk       *Desk       // the same, if it is a desk
	psp        *PSP        // the same, if it is a payment provider
	cluster    *Cluster    // the same, if it is a cluster
	monitoring *Monitoring // nil until there is one
	mirrors    []*Mirror
	services   []*harness.Service
	counters   []interface{ Fired() int } // the proxies, which count their own faults
	strikes    int                        // the other faults
	closers    []func() error
	notes      []string
	noted      int // effects in the ledger that the notes tell of
	skipped    string
	failure    error
}

func newStage(ctx context.Context, lab *harness.Lab, name string, seed uint64) (*Stage, error) {
	db, err := lab.NewDatabase(ctx)
	if err != nil {
		return nil, err
	}
	return &Stage{ctx: ctx, scenario: name, lab: lab, db: db, rand: chance(seed, name)}, nil
}

// Failf ends the scenario.
func (s *Stage) Failf(format string, args ...any) {
	s.failure = fmt.Errorf(format, args...)
	if s.part != "" {
		s.failure = fmt.Errorf("%s: %w", s.part, s.failure)
	}
	runtime.Goexit()
}

// Skipf ends a scenario that can't be played here.
func (s *Stage) Skipf(format string, args ...any) {
	s.skipped = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// Check ends the scenario unless something holds.
func (s *Stage) Check(holds bool, format string, args ...any) {
	if !holds {
		s.Failf(format, args...)
	}
}

// Notef adds to what the results say was seen.
func (s *Stage) Notef(format string, args ...any) {
	note := fmt.Sprintf(format, args...)
	if s.part != "" {
		note = s.part + ": " + note
	}
	s.notes = append(s.notes, note)
}

// SQLite tells which database the scenario plays on, for faults that each database needs in a form of its own.
func (s *Stage) SQLite() bool { return s.lab.Kind == database.SQLite }

// Serve starts a replica of the tickets service that finds its database at databaseURL, behind a proxy perhaps, or, if that is empty, directly.
func (s *Stage) Serve(databaseURL string) *harness.Service {
	if databaseURL == "" {
		databaseURL = s.db.URL
	}
	service, err := s.lab.Serve(s.ctx, harness.Settings{Role: "tickets", DatabaseURL: databaseURL})
	s.must(err)
	s.services = append(s.services, service)
	return service
}

// ServeStruck starts a replica that is struck at a system call, which may be before it is ready.
func (s *Stage) ServeStruck(strike faults.AtSyscall) (service *harness.Service, started bool) {
	service, err := s.lab.Serve(s.ctx, harness.Settings{Role: "tickets", DatabaseURL: s.db.URL, Under: strike.Prefix()})
	if errors.Is(err, harness.ErrEnded) {
		s.Struck()
		return nil, false
	}
	s.must(err)
	s.services = append(s.services, service)
	return service, true
}

// HTTPProxy puts a proxy in front of services.
func (s *Stage) HTTPProxy(services ...*harness.Service) *faults.HTTPProxy {
	var targets []string
	for _, service := range services {
		targets = append(targets, service.URL())
	}
	proxy, err := faults.NewHTTPProxy(targets...)
	s.must(err)
	proxy.Record(record.From(s.ctx))
	s.counters = append(s.counters, proxy)
	s.closers = append(s.closers, proxy.Close)
	return proxy
}

// PostgresProxy puts a proxy in front of the database and returns the database's URL through it.
func (s *Stage) PostgresProxy() (*faults.PostgresProxy, string) {
	proxy, err := faults.NewPostgresProxy(s.db.URL)
	s.must(err)
	proxy.Record(record.From(s.ctx))
	s.counters = append(s.counters, proxy)
	s.closers = append(s.closers, proxy.Close)
	through, err := proxy.Through(s.db.URL)
	s.must(err)
	return proxy, through
}

// LockSQLite takes the write lock of the database from outside.
func (s *Stage) LockSQLite() *faults.SQLiteLock {
	lock, err := faults.LockSQLite(s.ctx, s.db.Path)
	s.must(err)
	lock.Record(record.From(s.ctx))
	s.Struck()
	s.closers = append(s.closers, lock.Release)
	return lock
}

// Kill ends a service as a crash does.
func (s *Stage) Kill(service *harness.Service) {
	s.must(service.Kill())
	s.Struck()
}

// Freeze stops a service where it is.
func (s *Stage) Freeze(service *harness.Service) {
	s.must(service.Freeze())
	s.Struck()
}

// Struck counts a fault that no proxy counts.
func (s *Stage) Struck() { s.strikes++ }

// Moment lets a random part of the time pass that a request takes, which is 1 to 3 ms.
func (s *Stage) Moment() {
	<-time.After(time.Duration(s.rand.IntN(3000)) * time.Microsecond)
}

// soon is how long anything takes at most that is waited for with Await or Sprung, on a busy machine.
const soon = 20 * time.Second

// Await waits until something is true, which it asks every few milliseconds, and less often when it takes long: asking must not be what slows it.
func (s *Stage) Await(what string, is func() bool) {
	ctx, cancel := context.WithTimeout(s.ctx, soon)
	defer cancel()
	for since := time.Now(); !is(); {
		select {
		case <-time.After(max(5*time.Millisecond, time.Since(since)/20)):
		case <-ctx.Done():
			s.Failf("waited in vain until %s", what)
		}
	}
}

// AwaitDown waits until a number has come down to most, however long that takes while it keeps coming down.
func (s *Stage) AwaitDown(what string, most int, left func() int) {
	const every = 50 * time.Millisecond
	for before := math.MaxInt; before > most; {
		select {
		case <-time.After(every):
		case <-s.ctx.Done():
		}
		now := before
		s.Await(what, func() bool { now = left(); return now < before })
		before = now
	}
}

// Sprung waits until a trap for a COMMIT has gone off.
func (s *Stage) Sprung(trap *faults.CommitTrap) {
	ctx, cancel := context.WithTimeout(s.ctx, soon)
	defer cancel()
	s.must(trap.Wait(ctx))
}

func (s *Stage) terminateServices() error {
	var errs []error
	for _, service := range s.services {
		errs = append(errs, service.Terminate())
	}
	return errors.Join(errs...)
}

// ledger is where fsck finds the ledger of what is outside; empty: nothing is, or it tells of two effects where no protocol prevents them.
func (s *Stage) ledger() string {
	if s.world == nil || s.impossible {
		return ""
	}
	return s.world.URL()
}

func (s *Stage) logs() string {
	var all strings.Builder
	if s.world != nil {
		all.WriteString(s.world.Log())
	}
	for _, service := range s.services {
		all.WriteString(service.Log())
	}
	return all.String()
}

// close ends what stands between services and the world. A failure to do so is no finding.
func (s *Stage) close() {
	for _, end := range s.closers {
		_ = end()
	}
}

func (s *Stage) must(err error) {
	if err != nil {
		s.Failf("%w", err)
	}
}
