package scenarios

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/einmal/einmal/e2e/harness"
	"github.com/einmal/einmal/pkg/database"
)

// patience bounds one scenario. The longest brings ten thousand effects out, which takes half a minute on two cores with nothing else to do,
// and minutes beside other plays on a busy machine.
const patience = 5 * time.Minute

// Scenario is one way in which things go wrong, and what must hold all the same.
type Scenario struct {
	Name    string
	Promise string // what holds, in one sentence
	Injects bool   // whether it breaks anything; if so, a run in which nothing broke has failed

	// Only is the database that it can be played on; empty: any.
	Only database.Kind

	// Alone: it stops the server, which others that are played at the same time would notice.
	Alone bool

	// Impossible: it shows what no protocol prevents, two effects under one key (docs/protocol.md, "Impossible").
	Impossible bool

	// run plays the scenario and returns how many effects there must be in the end: in the ledger of what is outside, where something is, else tickets.
	run func(s *Stage) (effects int)
}

// Outcome is what became of a scenario.
type Outcome struct {
	Err      error  // nil if it passed
	Skipped  string // why it could not be played; empty: it was
	Took     time.Duration
	Injected *int // nil if the scenario injects nothing
	Effects  int  // in the ledger of what is outside, else tickets in the database; -1: they could not be counted
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

		commentRetriedOnce,
		statusIsAState,
		closedStaysClosed,
		sameEventTwoProjects,
		uniquenessOutlivesTheKey,
		expiredKeyNeverReruns,
		expiryRacesARetry,
		alertmanagerRepeats,
		alertmanagerPair,
		alertResolvesAndReturns,

		mirrorFollowsCreation,
		killedAfterClaim,
		killedAfterEffect,
		deskTimesOutUnknown,
		deskResets,
		deskAnswers500AfterEffect,
		pausedBeforeSendThenNotFound,
		lateRequestThenNotFound,
		lateRequestKeysIgnored,
		refusedAfterTimeout,
		cancelRequeued,
		lookupLags,
		deskWithoutKeysGoesToReview,
		keyWindowOver,
		unknownNeverExpires,
		sendStormDoesNotStarveReconcile,
		replicaFiveMinutesAhead,
		twoReplicasDrainOneQueue,
		unknownReachesAPersonAndIsResolved,
		personSaysFailedThenMoneyArrives,
		deadlineOpensAReview,

		pspTimesOutAfterCharging,
		pspNeverReceived,
		pspResets,
		pspAnswers500AfterCharging,
		psp429Storm,
		pspDeclines,
		killedBetweenSendAndSettle,
		twoAgentsOneOrder,
		paymentUnknownBlocksOrder,
		concurrentRefundsCannotExceed,
		refundRetryIsNotASecondRefund,
		captureCancelRace,
		alreadyCapturedIsSuccess,
		webhooksEarlyTwiceOutOfOrder,
		negativeWebhookLate,
		lateSuccessContradictsFailure,
		amountsEqualByValue,
		zeroAndThreeDigitCurrencies,
		orderFrozenRace,

		deploy118Then119,
		sameDigestRetryReplays,
		retaggedImage,
		mutableReferencesRefused,
		lockSurvivesUnknown,
		staleHolderIsFenced,
		resolveWhilePaused,
		queueKeepsOrder,
		expectedVersionMismatch,
		queuedPlanGoesStale,
		cancelWhileRunning,
		rollbackIsItsOwnOperation,
		rollbackTargetMustHaveSucceeded,
		killedMidRolloutResumes,
		reportedDigestDiffers,
		twoReplicasOneLock,
		tokenAfterRestore,

		approvalBindsThePayload,
		approvalExpires,
		approvalExpiresBeforeResend,
		approvalGoesStaleWithTheEnvironment,
		requesterCannotApprove,
		twoApproversDecideAtOnce,
		retryReusesTheApproval,
		secondRefundAsks,
		twoFirstRefunds,
		approvalHoldsNoLock,

		auditTamperingIsFound,
		sealerKilledMidBatch,
		deniedAttemptsAreLogged,
		dispute,
		claimForgotten,

		agentRestartedBetweenAttempts,
		agentKilledBeforeSync,
		agentKilledAfterSync,
		twoAgentsOneJournal,
		journalTorn,
		journalNulTail,
		budgetExhaustedHandsOver,
		retryAfterBeyondDeadline,
		conflictStopsTheAgent,
		businessFailureIsNotRetried,
		businessRetryNamesItsPredecessor,
		stepReusedWithOtherCommand,
		transportResendsSilently,
		answerWithoutBody,
		unknownIsPolledThenHandedOver,
	}
}

// Play runs the scenario on an empty database of its own and then checks what must hold after every scenario: as many effects as it
// says and never two under one key, nothing that is neither final nor with a person, a database in which fsck finds nothing, nor against the ledger of what is outside, a log that is as it was
// signed, services that leave cleanly when asked to, and faults that really happened.
func (sc Scenario) Play(ctx context.Context, lab *harness.Lab, seed uint64) (outcome Outcome) {
	start := time.Now()
	if sc.Only != "" && sc.Only != lab.Kind {
		return Outcome{Skipped: fmt.Sprintf("it is about %s", sc.Only)}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	room, err := lab.Room()
	if err != nil {
		return Outcome{Err: err}
	}
	s, err := newStage(ctx, room, sc.Name, seed)
	if err != nil {
		return Outcome{Err: errors.Join(err, room.Close())}
	}
	s.impossible = sc.Impossible
	var wanted int
	err = s.perform(func() {
		wanted = sc.run(s)
		s.must(s.terminateServices())
		s.must(s.db.Fsck(ctx, s.ledger()))
		s.must(s.db.AuditVerify(ctx))
		s.checkSecrets()
		s.checkMirrors()
		s.checkBooks()
		s.checkCluster()
		s.checkApprovals()
	})
	var kind string
	outcome.Skipped = s.skipped
	outcome.Effects, kind = s.effects()
	if injected := s.injected(); sc.Injects && s.skipped == "" {
		outcome.Injected = &injected
	}
	if err == nil && outcome.Skipped == "" {
		err = errors.Join(
			check(outcome.Effects == wanted, "%d %s, want %d", outcome.Effects, kind, wanted),
			check(!sc.Injects || *outcome.Injected > 0, "no fault happened, so nothing was shown"),
		)
	}
	outcome.Detail = strings.Join(s.notes, "; ")
	outcome.Log = s.logs()
	s.recordAftermath()
	outcome.Err = errors.Join(err, room.Close())
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
