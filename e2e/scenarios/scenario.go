package scenarios

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/einmal/einmal/e2e/harness"
)

// patience bounds one scenario. The longest waits ten seconds for PostgreSQL to give up on a frozen process.
const patience = 90 * time.Second

// Scenario is one way in which things go wrong, and what must hold all the same.
type Scenario struct {
	Name    string
	Promise string // what holds, in one sentence
	Injects bool   // whether it breaks anything; if so, a run in which nothing broke has failed

	// run plays the scenario and returns how many tickets there must be in the end.
	run func(s *Stage) (effects int)
}

// Outcome is what became of a scenario.
type Outcome struct {
	Err      error // nil if it passed
	Took     time.Duration
	Injected *int // nil if the scenario injects nothing
	Effects  int  // tickets in the database
	Detail   string
	Log      string // what the services wrote
}

// All are the scenarios, in the order in which they tell the story.
func All() []Scenario {
	return []Scenario{
		lostResponse,
		lostRequest,
		concurrentSameKey,
		sameKeyOtherCommand,
		sameKeyOtherRoute,
		otherAccountSameKey,
		malformedKeys,
		malformedBodies,
		sameEventOtherKey,
		killedBeforeCommit,
		commitAnswerLost,
		storeDownFailsClosed,
		callerHangsUp,
		frozenClaimant,
	}
}

// Play runs the scenario on an empty database of its own and then checks what must hold after every scenario: as many effects as it
// says, a database in which fsck finds nothing, services that leave cleanly when asked to, and faults that really happened.
func (sc Scenario) Play(ctx context.Context, lab *harness.Lab, seed uint64) (outcome Outcome) {
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s, err := newStage(ctx, lab, sc.Name, seed)
	if err != nil {
		return Outcome{Err: errors.Join(err, lab.Clear())}
	}
	var wanted int
	err = s.perform(func() {
		wanted = sc.run(s)
		s.must(s.terminateServices())
		s.must(s.db.Fsck(ctx))
	})
	outcome.Effects = s.tickets()
	if injected := s.injected(); sc.Injects {
		outcome.Injected = &injected
	}
	if err == nil {
		err = errors.Join(
			check(outcome.Effects == wanted, "%d tickets are in the database, want %d", outcome.Effects, wanted),
			check(!sc.Injects || *outcome.Injected > 0, "no fault happened, so nothing was shown"),
		)
	}
	outcome.Detail = strings.Join(s.notes, "; ")
	outcome.Log = s.logs()
	outcome.Err = errors.Join(err, lab.Clear())
	outcome.Took = time.Since(start)
	return outcome
}

// perform runs fn in a goroutine of its own, which Stage.Failf ends.
func (s *Stage) perform(fn func()) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer s.close()
		defer func() {
			if p := recover(); p != nil {
				s.failure = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			}
		}()
		fn()
	}()
	<-done
	return s.failure
}

func check(holds bool, format string, args ...any) error {
	if holds {
		return nil
	}
	return fmt.Errorf(format, args...)
}
