package outbox

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/review"
)

// What the target shows under a key that it has answered another command for may be somebody else's.
func TestAKeyThatIsNotOurs(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, set func(*testing.T, Ability) *stage) {
		theirs := func(Effect) Evidence { return Evidence{Finding: Confirmed, Reference: "D-theirs"} }
		waits := func(t *testing.T, s *stage, e Effect) review.Review {
			t.Helper()
			all := s.reviews(review.Contradiction)
			if len(all) != 1 || len(all[0].Evidence) != 1 || all[0].State != review.StateOpen || len(s.reviews(review.Unknown)) > 0 {
				t.Fatalf("%+v, %+v", all, s.reviews(review.Unknown))
			}
			if e.State != idempotency.Unknown || e.ReviewID != all[0].ID || e.NextAt != nil || e.LeasedBy != "" || e.Reference != "" {
				t.Errorf("%+v", e)
			}
			return all[0]
		}
		refused := func(t *testing.T) (*stage, Effect) {
			s := set(t, keyed)
			s.desk.onSend, s.desk.onLookup = always(Reused), theirs
			return s, s.send(s.accept("k"))
		}

		t.Run("asks a person, and is not asked about by itself", func(t *testing.T) {
			s, e := refused(t)
			waits(t, s, e)
			if diff := cmp.Diff([]string{"ambiguous"}, outcomes(s.operation(e))); diff != "" {
				t.Error(diff)
			}
		})
		t.Run("is not asked about, however often somebody wants it", func(t *testing.T) {
			s, e := refused(t)
			for range 3 {
				s.clock.advance(time.Minute)
				s.ok(s.inTx(func(tx database.Tx) error { _, err := s.box.Reconcile(tx, s.account, e.OperationID); return err }))
				e = s.ask(e)
			}
			if waits(t, s, e); s.desk.called(kindLookup) != 0 {
				t.Errorf("%d look-ups", s.desk.called(kindLookup))
			}
		})
		t.Run("is not asked about, nor closed, in a database that was set back", func(t *testing.T) {
			for _, ability := range []Ability{keyed, keyedShut, keyedHigh} {
				s := set(t, ability)
				s.desk.onSend, s.desk.onLookup = always(Reused), theirs
				e := s.send(s.accept("k"))
				s.ok(s.inTx(func(tx database.Tx) error { _, err := DoubtAll(tx, s.record); return err }))
				s.clock.advance(time.Minute)
				e = s.ask(e)
				waits(t, s, e)
				if s.desk.called(kindLookup)+s.desk.called(kindClose) != 0 {
					t.Errorf("%v", s.desk.calls)
				}
				s.ok(s.decide(e, idempotency.Failed, ""))
			}
		})
		t.Run("takes nothing from a look that was under way", func(t *testing.T) {
			s := set(t, keyed)
			slow := s.take(s.accept("k"))
			s.clock.advance(time.Minute)
			asked := s.takeToAsk(slow)
			s.sent(slow, Evidence{Finding: Reused, Says: "answered 422"})
			for _, ev := range []Evidence{{Finding: Confirmed, Reference: "D-theirs"}, {Finding: Verdict}, {Finding: Stopped}, {Finding: Accepted, Reference: "D-theirs"}, {Finding: NotFound}, {Finding: Ambiguous}} {
				s.clock.advance(tick)
				s.ok(s.box.settle(t.Context(), s.target, asked, ev, func(e Effect, now time.Time) step { return s.target.afterAsk(e, kindLookup, ev, now) }))
			}
			waits(t, s, s.now(slow))
		})
		t.Run("is told of, where what was found has ended the operation already", func(t *testing.T) {
			s := set(t, keyed)
			slow := s.take(s.accept("k"))
			s.clock.advance(time.Minute)
			s.desk.onLookup = theirs
			s.ask(slow)
			e := s.sent(slow, Evidence{Finding: Reused, Says: "answered 422"})
			if all := s.reviews(review.Contradiction); e.State != idempotency.Succeeded || len(all) != 1 {
				t.Errorf("%+v, %+v", all, e)
			}
		})
		t.Run("is not withdrawn by what it would close, and needs no close for a person's word to set its lock free", func(t *testing.T) {
			s := set(t, keyedHigh)
			_, lock := s.locked()
			lock.MayDecide = func(database.Tx, Effect) error { return ErrNotClosed }
			s.desk.onSend = always(Reused)
			e := s.send(s.accept("k"))
			err := s.inTx(func(tx database.Tx) error { _, err := s.box.Cancel(tx, s.account, e.OperationID); return err })
			if !errors.Is(err, ErrRunning) || s.now(e).CancelAskedAt != nil {
				t.Errorf("canceled: %v, %+v", err, s.now(e))
			}
			s.ok(s.inTx(func(tx database.Tx) error {
				return s.box.Decide(tx, s.account, e.OperationID, idempotency.Failed, "")
			}))
			if e = s.now(e); e.State != idempotency.Failed || s.desk.called(kindClose) != 0 {
				t.Errorf("%d closes, %+v", s.desk.called(kindClose), e)
			}
		})
		t.Run("ends by a person who says how", func(t *testing.T) {
			s, e := refused(t)
			resolve := func(state idempotency.State) error {
				return s.inTx(func(tx database.Tx) error {
					r, err := review.Resolve(tx, s.account, e.ReviewID, "olga", state, review.Evidence{Source: "olga", At: tx.Now, Says: "theirs"})
					if err == nil {
						err = s.box.Resolve(tx, r, state, "")
					}
					return err
				})
			}
			if err := resolve(""); !errors.Is(err, ErrUndecided) {
				t.Errorf("resolved without a word about its end: %v", err)
			}
			s.ok(resolve(idempotency.Failed))
			if e = s.now(e); e.State != idempotency.Failed || e.inDoubt() {
				t.Errorf("%+v", e)
			}
		})
	})
}

func outcomes(op idempotency.Operation) (all []string) {
	for _, s := range op.Effect.Sends {
		all = append(all, s.Outcome)
	}
	return all
}
