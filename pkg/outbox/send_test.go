package outbox

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/catalogue"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/review"
)

// One line for each finding, and what follows with no earlier send in doubt, and with one (only targets with keys get there).
func TestWhatFollowsFromASend(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		ability string
		of      Ability
		finding Finding
		doubt   int64 // of an effect with fence 3
		want    string
	}{
		{"key", keyed, Confirmed, 3, "succeeded"},
		{"key", keyed, Confirmed, 1, "succeeded"},
		{"key", keyed, Verdict, 3, "failed by verdict"},
		{"key", keyed, Verdict, 1, "failed by verdict"},
		{"key", keyed, Refused, 3, "failed by refusal"},
		{"key", keyed, Refused, 1, "unknown later"},
		{"key", keyed, NotSent, 3, "queued later"},
		{"key", keyed, NotSent, 1, "unknown later"},
		{"key", keyed, Ambiguous, 3, "unknown later"},
		{"key", keyed, Accepted, 3, "running later"},
		{"key", keyed, Different, 3, "unknown for a person"},
		{"key without look-up", keyedOnly, Ambiguous, 3, "unknown later"},
		{"key without look-up", keyedOnly, Refused, 1, "queued later"},
		{"key without look-up", keyedOnly, NotSent, 1, "queued later"},
		{"floor", floored, Verdict, 3, "failed by refusal"},
		{"floor", floored, Refused, 1, "unknown later"},
		{"floor", floored, NotSent, 3, "queued later"},
		{"floor", floored, NotSent, 1, "unknown later"},
		{"floor", floored, Ambiguous, 3, "unknown later"},
		{"look-up", lookedUp, Verdict, 3, "failed by refusal"},
		{"look-up", lookedUp, NotSent, 3, "queued later"},
		{"look-up", lookedUp, Ambiguous, 3, "unknown later"},
		{"none", unable, Confirmed, 3, "succeeded"},
		{"none", unable, Refused, 3, "failed by refusal"},
		{"none", unable, NotSent, 3, "queued later"},
		{"none", unable, Ambiguous, 3, "unknown for a person"},
		// What a send can't show is nothing.
		{"key", keyed, NotFound, 3, "unknown later"},
		{"floor", floored, Closed, 3, "unknown later"},
		{"key", keyed, "", 3, "unknown later"},
	} {
		t.Run(fmt.Sprintf("%s, %q under fence 3 with doubt %d: %s", c.ability, c.finding, c.doubt, c.want), func(t *testing.T) {
			target := Target{Ability: c.of, MaxAttempts: 3, AskEvery: time.Second}
			e := Effect{State: idempotency.Running, Fence: 3, Doubt: &c.doubt, Attempts: 1}
			if got := describeStep(target.afterSend(e, c.of.believe(Evidence{Finding: c.finding}), now), now); got != c.want {
				t.Errorf("got %s", got)
			}
		})
	}
}

// describeStep says in words what a step is.
func describeStep(s step, now time.Time) string {
	words := []string{string(s.to)}
	if s.reason != "" {
		words = append(words, "by "+string(s.reason))
	}
	switch {
	case s.next.Equal(now):
		words = append(words, "now")
	case s.next.After(now):
		words = append(words, "later")
	}
	if s.askPerson {
		words = append(words, "for a person")
	}
	return strings.Join(words, " ")
}

func TestSends(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, set func(*testing.T, Ability) *stage) {
		t.Run("that are exhausted without doubt have failed", func(t *testing.T) {
			s := set(t, lookedUp)
			s.desk.onSend = always(NotSent)
			e := s.accept("k")
			for range s.target.MaxAttempts {
				e = s.send(e)
				if e.State != idempotency.Queued || e.inDoubt() {
					t.Fatalf("after a send that was none: %+v", e)
				}
				s.clock.advance(time.Minute)
			}
			e = s.send(e)
			if op := s.operation(e); op.State != idempotency.Failed || string(op.ResponseBody) != "failed exhausted " || s.desk.called(kindSend) != 3 {
				t.Errorf("%s %q after %d sends", op.State, op.ResponseBody, s.desk.called(kindSend))
			}
		})
		t.Run("that are exhausted in doubt are asked about, and end with a person", func(t *testing.T) {
			s := set(t, keyed)
			s.desk.onSend = always(Ambiguous)
			e := s.accept("k")
			for range s.target.MaxAttempts {
				s.send(e)
				s.clock.advance(time.Minute)
				e = s.ask(e)
				s.clock.advance(time.Minute)
				if e.State == idempotency.Queued != (e.Attempts < s.target.MaxAttempts) {
					t.Fatalf("after a look that found nothing: %+v", e)
				}
			}
			s.clock.advance(time.Minute)
			e = s.ask(e)
			if e.State != idempotency.Unknown || e.ReviewID == "" || len(s.reviews(review.Unknown)) != 1 || s.desk.called(kindSend) != 3 {
				t.Errorf("%d sends, %d reviews, %+v", s.desk.called(kindSend), len(s.reviews(review.Unknown)), e)
			}
		})
		t.Run("that are exhausted in doubt, with the last one certainly not sent, are closed where that can be done", func(t *testing.T) {
			s := set(t, keyedShut)
			s.target.MaxAttempts = 2
			s.build()
			s.desk.onSend = always(Ambiguous)
			e := s.accept("k")
			s.send(e)
			s.clock.advance(time.Minute)
			s.ask(e)
			s.desk.onSend = always(NotSent)
			if e = s.send(e); e.State != idempotency.Unknown || *e.Doubt != 1 || e.NextAt == nil {
				t.Fatalf("after the second, which is the last: %+v", e)
			}
			s.clock.advance(time.Minute)
			e = s.ask(e)
			if e.State != idempotency.Failed || s.desk.called(kindClose) != 1 {
				t.Errorf("%d closes, %+v", s.desk.called(kindClose), e)
			}
		})
		t.Run("stop at the end of the key window, counted from the first send", func(t *testing.T) {
			s := set(t, keyed)
			s.target.MaxAttempts = 100
			s.build()
			s.desk.onSend = always(Ambiguous)
			e := s.send(s.accept("k"))
			first := *e.FirstSentAt
			s.clock.advance(50 * time.Minute)
			s.ask(e)
			e = s.send(e)
			if !e.FirstSentAt.Equal(first) || s.desk.called(kindSend) != 2 {
				t.Fatalf("%d sends, the window began %s, then %s", s.desk.called(kindSend), first, *e.FirstSentAt)
			}
			s.clock.advance(10*time.Minute - s.target.Timeout) // a call that began now could end after the window
			if e = s.ask(e); e.State != idempotency.Unknown {
				t.Fatalf("queued for a send that may not follow: %+v", e)
			}
			s.clock.advance(time.Minute)
			e = s.ask(e)
			if e.State != idempotency.Unknown || e.ReviewID == "" || s.desk.called(kindSend) != 2 {
				t.Errorf("%d sends, %+v", s.desk.called(kindSend), e)
			}
		})
		t.Run("that are queued when the key window ends are asked about instead", func(t *testing.T) {
			s := set(t, keyed)
			s.desk.onSend = always(Ambiguous)
			e := s.send(s.accept("k"))
			s.clock.advance(time.Minute)
			s.ask(e)
			s.clock.advance(time.Hour)
			if e = s.send(e); e.State != idempotency.Unknown || e.NextAt == nil || s.desk.called(kindSend) != 1 {
				t.Errorf("%d sends, %+v", s.desk.called(kindSend), e)
			}
		})
		t.Run("wait as long as the target asks", func(t *testing.T) {
			s := set(t, lookedUp)
			s.desk.onSend = func(Effect) Evidence { return Evidence{Finding: NotSent, RetryAfter: 17 * time.Second} }
			e := s.send(s.accept("k"))
			if wait := e.NextAt.Sub(s.db.Now()); wait < 17*time.Second || wait > 18*time.Second {
				t.Errorf("%s", wait)
			}
			s.clock.advance(16 * time.Second)
			s.ok(s.box.send(context.Background(), s.target, e))
			if s.desk.called(kindSend) != 1 {
				t.Error("sent before that")
			}
		})
		t.Run("once, where the target has neither keys nor a way to close", func(t *testing.T) {
			for _, ability := range []Ability{lookedUp, unable} {
				s := set(t, ability)
				s.desk.onSend = always(Ambiguous)
				e := s.send(s.accept("k"))
				for range 5 {
					s.clock.advance(time.Hour)
					s.ask(e)
					s.send(e)
				}
				if e = s.now(e); s.desk.called(kindSend) != 1 || e.State != idempotency.Unknown || e.ReviewID == "" {
					t.Errorf("%d sends, %+v", s.desk.called(kindSend), e)
				}
			}
		})
		t.Run("again under the same key, after the target was asked", func(t *testing.T) {
			s := set(t, keyed)
			answers := []Finding{Ambiguous, Confirmed}
			s.desk.onSend = func(Effect) Evidence {
				defer func() { answers = answers[1:] }()
				return Evidence{Finding: answers[0], Reference: "D-1"}
			}
			e := s.send(s.accept("k"))
			s.clock.advance(time.Minute)
			s.ask(e)
			e = s.send(e)
			if diff := cmp.Diff([]string{kindSend, kindLookup, kindSend}, s.desk.calls); diff != "" || e.State != idempotency.Succeeded || s.desk.sends[e.EffectKey] != 2 {
				t.Errorf("%s %+v", diff, e)
			}
			want := []string{
				"sent queued>running", "unknown running>unknown", "reconciled unknown>queued", "queued unknown>queued", "sent queued>running", "completed running>succeeded",
			}
			if diff := cmp.Diff(want, s.events(e)); diff != "" {
				t.Error(diff)
			}
		})
	})
}

// The first send may arrive while the second is turned away. A desk that was asked before the third knows it; one that forgot the key
// would do it again.
func TestEverySendInDoubtIsPrecededByALook(t *testing.T) {
	t.Parallel()
	for _, finding := range []Finding{NotSent, Refused} {
		t.Run(fmt.Sprintf("also after one that was %s", finding), func(t *testing.T) {
			s := newStage(t, dbtest.URL(t, database.SQLite), keyed)
			s.desk.onSend = always(Ambiguous)
			e := s.send(s.accept("k"))
			s.clock.advance(time.Minute)
			s.ask(e)
			s.desk.onSend = always(finding)
			e = s.send(e)
			s.desk.onLookup = func(Effect) Evidence { return Evidence{Finding: Confirmed, Reference: "D-1"} }
			s.clock.advance(time.Minute)
			e = s.settleDown(e)
			if diff := cmp.Diff([]string{kindSend, kindLookup, kindSend, kindLookup}, s.desk.calls); diff != "" || e.State != idempotency.Succeeded {
				t.Errorf("%s %+v", diff, e)
			}
		})
	}
}

// A copy of a refusal comes to every copy of a send only where the target knows them by their key. Elsewhere it says something
// about one send, and an earlier one may still arrive.
func TestVerdictOfAWorkerThatWasFencedOut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ability Ability
		want    idempotency.State
	}{"is one where the target has keys": {keyed, idempotency.Failed}, "is none where it has no keys": {floored, idempotency.Unknown}} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, dbtest.URL(t, database.SQLite), c.ability)
			slow := s.take(s.accept("k"))
			s.clock.advance(time.Minute)
			s.takeToAsk(slow)
			if e := s.sent(slow, Evidence{Finding: Verdict}); e.State != c.want {
				t.Errorf("%+v", e)
			}
		})
	}
}

func TestNegativesOfAWorkerThatWasFencedOut(t *testing.T) {
	t.Parallel()
	for _, finding := range []Finding{Refused, NotSent, Ambiguous, Accepted} {
		t.Run(fmt.Sprintf("%s changes nothing", finding), func(t *testing.T) {
			s := newStage(t, dbtest.URL(t, database.SQLite), floored)
			slow := s.take(s.accept("k"))
			s.clock.advance(time.Minute)
			before := s.takeToAsk(slow)
			if diff := cmp.Diff(before, s.sent(slow, Evidence{Finding: finding})); diff != "" {
				t.Error(diff)
			}
			sends := s.operation(before).Effect.Sends
			if len(sends) != 1 || sends[0].Outcome != string(finding) {
				t.Errorf("its attempt is not told: %+v", sends)
			}
		})
	}
}

// The policy promises that a mirror outlasts an outage of the desk and the night after it.
func TestSendsLastAsLongAsThePolicySays(t *testing.T) {
	entry, _ := catalogue.Lookup(catalogue.TicketMirror)
	target := Target{LongestWait: entry.LongestWait()}
	var least, most time.Duration
	for n := 1; n < entry.MaxAttempts; n++ {
		limit := min(firstWait<<min(n-1, 20), target.betweenSends())
		least, most = least+limit/2, most+limit
	}
	if deadline := time.Duration(entry.DeadlineSeconds) * time.Second; least < deadline/2 || most < deadline {
		t.Errorf("%d sends last %s to %s, and the policy says %s", entry.MaxAttempts, least, most, deadline)
	}
}

func TestBackoff(t *testing.T) {
	t.Run("grows up to what the target is to be given", func(t *testing.T) {
		for range 50 {
			if got := backoff(100, time.Hour, 0); got < 30*time.Minute || got >= time.Hour {
				t.Errorf("%s", got)
			}
		}
	})
	t.Run("grows, is never the same for all, and has an end", func(t *testing.T) {
		for n := range 100 {
			var waits []time.Duration
			for range 50 {
				waits = append(waits, backoff(n, longestWait, 0))
			}
			least, most := slices.Min(waits), slices.Max(waits)
			limit := min(longestWait, firstWait<<max(min(n, 20)-1, 0))
			if least < limit/2 || most >= limit || least == most {
				t.Errorf("try %d: %s to %s, want between %s and %s", n, least, most, limit/2, limit)
			}
		}
	})
	for _, c := range []struct{ asked, least, most time.Duration }{
		{-time.Hour, 100 * time.Millisecond, 200 * time.Millisecond},
		{5 * time.Second, 5100 * time.Millisecond, 5200 * time.Millisecond},
		{100 * 365 * 24 * time.Hour, time.Hour, time.Hour + time.Second},
	} {
		t.Run(fmt.Sprintf("is between %s and %s where the target asks for %s", c.least, c.most, c.asked), func(t *testing.T) {
			if got := backoff(1, longestWait, c.asked); got < c.least || got > c.most {
				t.Errorf("%s", got)
			}
		})
	}
}
