package outbox

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/review"
)

// After a COMMIT without an answer a worker settles once more what may be settled already.
func TestSettlingTwiceIsSettlingOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, set func(*testing.T, Ability) *stage) {
		for _, c := range []struct {
			of Ability
			ev Evidence
		}{
			{keyed, Evidence{Finding: Confirmed, Reference: "D-1"}},
			{keyed, Evidence{Finding: Verdict}},
			{keyed, Evidence{Finding: Refused}},
			{keyed, Evidence{Finding: NotSent}},
			{keyed, Evidence{Finding: Ambiguous}},
			{unable, Evidence{Finding: Ambiguous, Says: "reset"}},
			{keyed, Evidence{Finding: Accepted, Reference: "R-1"}},
		} {
			t.Run(fmt.Sprintf("for %s", c.ev.Finding), func(t *testing.T) {
				s := set(t, c.of)
				taken := s.take(s.accept("k"))
				once := s.sent(taken, c.ev)
				events, op, reviews := s.events(taken), s.operation(taken), s.reviews(review.Unknown)
				twice := s.sent(taken, c.ev)
				if diff := cmp.Diff(once, twice); diff != "" {
					t.Errorf("the effect: %s", diff)
				}
				if diff := cmp.Diff(events, s.events(taken)); diff != "" {
					t.Errorf("its events: %s", diff)
				}
				if diff := cmp.Diff(op.Answer(), s.operation(taken).Answer()); diff != "" {
					t.Errorf("its operation: %s", diff)
				}
				if diff := cmp.Diff(reviews, s.reviews(review.Unknown)); diff != "" || len(s.reviews(review.Contradiction)) > 0 {
					t.Errorf("its reviews: %s", diff)
				}
			})
		}
	})
}

// The event of the end tells what it came from: a receipt proves no more than events tell, and of what was sent and answered there is no other.
func TestTheEndTellsItsEffect(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, set func(*testing.T, Ability) *stage) {
		for name, c := range map[string]struct {
			reference string
			end       func(s *stage, e Effect)
		}{
			"by an answer":   {"D-1", func(s *stage, e Effect) { s.sent(s.take(e), Evidence{Finding: Confirmed, Reference: "D-1"}) }},
			"by a refusal":   {"", func(s *stage, e Effect) { s.sent(s.take(e), Evidence{Finding: Refused}) }},
			"by withdrawing": {"", func(s *stage, e Effect) { s.ok(s.cancel(e)) }},
		} {
			t.Run(name, func(t *testing.T) {
				s := set(t, keyed)
				e := s.accept("k")
				c.end(s, e)
				var told struct{ EffectKey, Reference string }
				s.ok(s.db.Read(t.Context()).Raw("SELECT effect_key, reference FROM events WHERE operation_id = ? AND to_state IN ('succeeded', 'failed', 'canceled')", e.OperationID).Scan(&told).Error)
				if told.EffectKey != e.EffectKey || told.Reference != c.reference {
					t.Errorf("%+v, want %s and %q", told, e.EffectKey, c.reference)
				}
			})
		}
	})
}

func TestSettleWhoseCommitGotNoAnswer(t *testing.T) {
	t.Parallel()
	proxy := loseCommits(t, dbtest.URL(t, database.Postgres))
	s := newStage(t, proxy.url, keyed)
	e := s.take(s.accept("k"))
	proxy.lose(func() {})
	e = s.sent(e, Evidence{Finding: Confirmed, Reference: "D-1"})
	want := []string{"sent queued>running", "completed running>succeeded"}
	if diff := cmp.Diff(want, s.events(e)); diff != "" || !proxy.lost() || e.State != idempotency.Succeeded || len(s.reviews(review.Contradiction)) > 0 {
		t.Errorf("%s %+v", diff, e)
	}
}

func TestLatePositiveEvidence(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, set func(*testing.T, Ability) *stage) {
		confirmed := Evidence{Finding: Confirmed, Reference: "D-1"}
		for name, meanwhile := range map[string]func(s *stage, e Effect){
			"asked about by another": func(s *stage, e Effect) { s.takeToAsk(e) },
			"queued again":           func(s *stage, e Effect) { s.ask(e) },
			"sent again":             func(s *stage, e Effect) { s.ask(e); s.take(e) },
		} {
			t.Run("settles an effect that was "+name, func(t *testing.T) {
				s := set(t, keyed)
				slow := s.take(s.accept("k"))
				s.clock.advance(time.Minute)
				meanwhile(s, slow)
				from := s.now(slow).State
				e := s.sent(slow, confirmed)
				if op := s.operation(e); op.State != idempotency.Succeeded || e.Reference != "D-1" {
					t.Errorf("%s, %+v", op.State, e)
				}
				if last := s.events(e); !strings.HasPrefix(last[len(last)-1], fmt.Sprintf("completed %s>succeeded", from)) {
					t.Errorf("%q", last)
				}
			})
		}
		t.Run("against what a person has decided opens one review and frees nothing", func(t *testing.T) {
			for _, decided := range []idempotency.State{idempotency.Failed, idempotency.Canceled} {
				s := set(t, unable)
				slow := s.take(s.accept("k"))
				s.clock.advance(time.Minute)
				s.ask(slow)
				s.ok(s.inTx(func(tx database.Tx) error { return s.box.Decide(tx, s.account, slow.OperationID, decided, "") }))
				before, answer := s.now(slow), s.operation(slow).Answer()
				for range 2 {
					if diff := cmp.Diff(before, s.sent(slow, confirmed)); diff != "" {
						t.Error(diff)
					}
				}
				questions := s.reviews(review.Contradiction)
				if diff := cmp.Diff(answer, s.operation(slow).Answer()); diff != "" || len(questions) != 1 || questions[0].State != review.StateOpen || questions[0].OperationID != slow.OperationID {
					t.Errorf("%s %+v", diff, questions)
				}
			}
		})
		t.Run("with another reference than the first opens a review", func(t *testing.T) {
			s := set(t, keyed)
			slow := s.take(s.accept("k"))
			s.sent(slow, confirmed)
			e := s.sent(slow, Evidence{Finding: Confirmed, Reference: "D-2"})
			if e.Reference != "D-1" || len(s.reviews(review.Contradiction)) != 1 {
				t.Errorf("%d reviews, %+v", len(s.reviews(review.Contradiction)), e)
			}
		})
	})
}

func TestContradiction(t *testing.T) {
	known := func(state idempotency.State, reference string) Effect {
		return Effect{State: state, Reference: reference}
	}
	for _, c := range []struct {
		name  string
		known Effect
		ev    Evidence
		want  bool
	}{
		{"it happened, though it failed", known(idempotency.Failed, ""), Evidence{Finding: Confirmed}, true},
		{"it happened, though it was canceled", known(idempotency.Canceled, ""), Evidence{Finding: Confirmed}, true},
		{"it goes on, though it was canceled", known(idempotency.Canceled, ""), Evidence{Finding: Accepted}, true},
		{"a verdict, though it happened", known(idempotency.Succeeded, "D-1"), Evidence{Finding: Verdict}, true},
		{"it was broken off, though it happened", known(idempotency.Succeeded, "D-1"), Evidence{Finding: Stopped}, true},
		{"it was broken off, and is canceled", known(idempotency.Canceled, "D-1"), Evidence{Finding: Stopped}, false},
		{"a second reference after the end", known(idempotency.Succeeded, "D-1"), Evidence{Finding: Confirmed, Reference: "D-2"}, true},
		{"a second reference on the way", known(idempotency.Running, "D-1"), Evidence{Finding: Accepted, Reference: "D-2"}, true},
		{"two effects under one key, which is news", known(idempotency.Unknown, ""), Evidence{Finding: Confirmed, Reference: "D-1", More: []string{"D-2"}}, true},
		{"two effects under one key, one of them known", known(idempotency.Succeeded, "D-1"), Evidence{Finding: Confirmed, Reference: "D-1", More: []string{"D-2"}}, true},
		{"two effects under one key, though it failed", known(idempotency.Failed, ""), Evidence{Finding: Confirmed, Reference: "D-1", More: []string{"D-2"}}, true},
		{"it happened, as is known", known(idempotency.Succeeded, "D-1"), Evidence{Finding: Confirmed, Reference: "D-1"}, false},
		{"it happened, without a reference", known(idempotency.Succeeded, "D-1"), Evidence{Finding: Confirmed}, false},
		{"it happened, with the first reference", known(idempotency.Succeeded, ""), Evidence{Finding: Confirmed, Reference: "D-1"}, false},
		{"it happened, which is news", known(idempotency.Unknown, ""), Evidence{Finding: Confirmed, Reference: "D-1"}, false},
		{"a verdict, as is known", known(idempotency.Failed, ""), Evidence{Finding: Verdict}, false},
		{"a verdict, and it was canceled: neither had an effect", known(idempotency.Canceled, ""), Evidence{Finding: Verdict}, false},
		{"a negative that came too late", known(idempotency.Succeeded, "D-1"), Evidence{Finding: NotSent}, false},
		{"nothing", known(idempotency.Failed, ""), Evidence{}, false},
	} {
		t.Run(fmt.Sprintf("%s: %v", c.name, c.want), func(t *testing.T) {
			if says := contradiction(c.known, c.ev); says != "" != c.want {
				t.Errorf("%q", says)
			}
		})
	}
}

// What is fenced out must not ask anybody: the question would stay open beside an operation that has ended.
func TestEvidenceThatIsFencedOutAsksNobody(t *testing.T) {
	t.Parallel()
	s := newStage(t, dbtest.URL(t, database.SQLite), unable)
	slow := s.take(s.accept("k"))
	s.sent(slow, Evidence{Finding: Confirmed, Reference: "D-1"})
	s.sent(slow, Evidence{Finding: Ambiguous, Says: "reset"})
	if questions := s.reviews(review.Unknown); len(questions) > 0 {
		t.Errorf("%+v", questions)
	}
}

func TestServiceThatDoesNotSettle(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, set func(*testing.T, Ability) *stage) {
		t.Run("keeps its effect, which is asked about and settled later", func(t *testing.T) {
			s := set(t, lookedUp)
			settle := s.target.Settle
			s.target.Settle = func(database.Tx, Effect, End) (idempotency.Answer, error) { panic("nil map") }
			s.build()
			e := s.accept("k")
			if err := s.box.work(t.Context(), s.box.lanes(s.target)[0], e); err == nil {
				t.Error("nobody hears of it")
			}
			if e = s.now(e); e.State != idempotency.Running || !e.inDoubt() {
				t.Fatalf("%+v", e)
			}
			s.target.Settle = settle
			s.build()
			s.desk.onLookup = always(Confirmed)
			s.clock.advance(time.Minute)
			if e = s.ask(e); e.State != idempotency.Succeeded {
				t.Errorf("%+v", e)
			}
		})
	})
}
