package problem_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/problem"
)

// contract is every code docs/contract.md names, with the status it gives it there.
var contract = map[problem.Code]int{
	"unauthenticated": 401, "forbidden": 403, "not-found": 404, "route-not-found": 404, "method-not-allowed": 405,
	"rate-limited": 429, "unsupported-media-type": 415, "body-too-large": 413, "malformed-body": 400, "validation-failed": 422,
	"malformed-request": 400, "headers-too-large": 431,

	"idempotency-key-missing": 400, "idempotency-key-invalid": 400, "idempotency-key-reused": 422, "idempotency-key-expired": 410,
	"operation-in-progress": 409, "operation-not-found": 404, "operation-final": 409, "operation-running": 409,
	"operation-canceled": 409, "deadline-exceeded": 409, "attempts-exhausted": 409, "effect-refused": 409,

	"internal-error": 500, "fingerprint-version-unknown": 503, "target-not-served": 503, "store-rewound": 503, "store-unavailable": 503,

	"ticket-closed": 409, "version-mismatch": 409,

	"order-frozen": 409, "order-mismatch": 409, "order-busy": 409, "order-not-payable": 409, "payment-busy": 409,
	"payment-not-capturable": 409, "payment-not-cancelable": 409, "capture-exceeds-authorized": 409,
	"refund-exceeds-remaining": 409, "payment-declined": 402, "refund-declined": 402,

	"mutable-reference": 422, "invalid-digest": 422, "environment-locked": 409, "environment-changed": 409,
	"not-live": 409, "no-rollback-target": 409, "rollout-failed": 409,

	"requester-cannot-approve": 403, "approval-decided": 409, "approval-rejected": 409, "approval-expired": 409,
	"approval-stale": 409, "review-resolved": 409,
}

func TestCatalogueIsTheContract(t *testing.T) {
	got := map[problem.Code]int{}
	for _, e := range problem.All() {
		if _, twice := got[e.Code]; twice {
			t.Errorf("%s is in the catalogue twice", e.Code)
		}
		got[e.Code] = e.Status
	}
	if diff := cmp.Diff(contract, got); diff != "" {
		t.Errorf("codes and statuses (-contract +catalogue):\n%s", diff)
	}
}

func TestEveryEntryIsComplete(t *testing.T) {
	code := regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)
	effects := []problem.Effect{problem.EffectNone, problem.EffectApplied, problem.EffectUnknown}
	retries := []problem.Retry{problem.RetrySameKey, problem.RetryNewKey, problem.RetryNever}
	actions := []problem.NextAction{
		problem.NextRetrySameKey, problem.NextPollOperation, problem.NextFixRequest,
		problem.NextNewOperation, problem.NextAskHuman, problem.NextStop,
	}
	titles := map[string]problem.Code{}
	for _, e := range problem.All() {
		if !code.MatchString(string(e.Code)) {
			t.Errorf("%q is not lower-case words joined by hyphens", e.Code)
		}
		if e.Title == "" || !strings.HasSuffix(e.Advice, ".") {
			t.Errorf("%s: title %q, advice %q; want both, the advice in sentences", e.Code, e.Title, e.Advice)
		}
		if other, taken := titles[e.Title]; taken {
			t.Errorf("%s and %s have the same title", e.Code, other)
		}
		titles[e.Title] = e.Code
		if !slices.Contains(effects, e.Effect) || !slices.Contains(retries, e.Retry) || !slices.Contains(actions, e.NextAction) {
			t.Errorf("%s: effect %q, retry %q, next action %q; one of them is no such value", e.Code, e.Effect, e.Retry, e.NextAction)
		}
	}
}

// What an answer says must not contradict itself, or a program that follows it does harm.
func TestAdviceMakesSense(t *testing.T) {
	for _, e := range problem.All() {
		if e.Effect == problem.EffectUnknown && e.Retry == problem.RetryNewKey {
			t.Errorf("%s: a new key while the effect is unknown is how a second effect happens", e.Code)
		}
		if e.RetryAfterSeconds < 0 || e.RetryAfterSeconds > 0 && e.Retry != problem.RetrySameKey {
			t.Errorf("%s: waits %d s with retry %s; waiting is for the same key", e.Code, e.RetryAfterSeconds, e.Retry)
		}
		if e.NextAction == problem.NextRetrySameKey && e.Retry != problem.RetrySameKey ||
			e.NextAction == problem.NextNewOperation && e.Retry != problem.RetryNewKey ||
			e.NextAction == problem.NextStop && e.Retry != problem.RetryNever {
			t.Errorf("%s: next action %s with retry %s", e.Code, e.NextAction, e.Retry)
		}
		if e.Retry == problem.RetryNever && e.NextAction != problem.NextStop && e.NextAction != problem.NextAskHuman {
			t.Errorf("%s: next action %s although no retry can succeed", e.Code, e.NextAction)
		}
	}
}

func TestTransientRefusalsAskForTheSameKeyLater(t *testing.T) {
	for _, code := range []problem.Code{
		problem.EnvironmentLocked, problem.OrderBusy, problem.PaymentBusy,
		problem.OperationInProgress, problem.RateLimited,
		problem.StoreUnavailable, problem.StoreRewound, problem.FingerprintVersionUnknown, problem.TargetNotServed,
	} {
		e, _ := problem.Lookup(code)
		if e.Retry != problem.RetrySameKey || e.NextAction != problem.NextRetrySameKey || e.RetryAfterSeconds == 0 {
			t.Errorf("%s: retry %s, next action %s after %d s; want the same key again after a while", code, e.Retry, e.NextAction, e.RetryAfterSeconds)
		}
	}
}

func TestAFinalAnswerNeverAsksForTheSameKey(t *testing.T) {
	for _, code := range []problem.Code{
		problem.IdempotencyKeyReused, problem.IdempotencyKeyExpired,
		problem.TicketClosed, problem.VersionMismatch,
		problem.OrderFrozen, problem.OrderMismatch, problem.OrderNotPayable, problem.PaymentNotCapturable, problem.PaymentNotCancelable,
		problem.CaptureExceedsAuthorized, problem.RefundExceedsRemaining, problem.PaymentDeclined, problem.RefundDeclined,
		problem.EnvironmentChanged, problem.NotLive, problem.NoRollbackTarget, problem.RolloutFailed,
		problem.EffectRefused, problem.AttemptsExhausted, problem.DeadlineExceeded, problem.OperationCanceled,
		problem.ApprovalRejected, problem.ApprovalExpired, problem.ApprovalStale, problem.ApprovalDecided, problem.ReviewResolved,
	} {
		if e, _ := problem.Lookup(code); e.Retry == problem.RetrySameKey {
			t.Errorf("%s: its stored answer would be replayed, so the same key leads nowhere", code)
		}
	}
}
