package outbox

import (
	"errors"
	"testing"

	"github.com/einmal/einmal/pkg/approval"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

// forget is what an operator's acceptance of an older copy does to the effects in it.
func (s *stage) forget(want int) {
	s.t.Helper()
	s.ok(s.inTx(func(tx database.Tx) error {
		n, err := DoubtAll(tx, s.record)
		if n != want {
			s.t.Errorf("%d effects are in doubt, want %d", n, want)
		}
		return err
	}))
}

func TestADatabaseThatWasSetBack(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, set func(*testing.T, Ability) *stage) {
		t.Run("asks before it sends what was queued", func(t *testing.T) {
			s := set(t, keyed)
			s.desk.onLookup = func(Effect) Evidence { return Evidence{Finding: Confirmed, Reference: "D-1"} }
			e := s.accept("k")
			s.forget(1)
			if now := s.now(e); now.State != idempotency.Unknown || !now.inDoubt() || now.FirstSentAt == nil || !now.FirstSentAt.Equal(e.CreatedAt) {
				t.Fatalf("%+v", now)
			}
			s.ask(e)
			if s.operation(e).State != idempotency.Succeeded || s.desk.called(kindSend) != 0 {
				t.Errorf("%s after %v", s.operation(e).State, s.desk.calls)
			}
		})
		t.Run("ends a question, since whether it was answered is forgotten, and finds what that has led to", func(t *testing.T) {
			s := set(t, keyed)
			s.desk.onLookup = func(Effect) Evidence { return Evidence{Finding: Confirmed, Reference: "D-1"} }
			e := s.asks("k")
			s.forget(1)
			if a := s.approval(e); a.State != approval.Stale {
				t.Errorf("%+v", a)
			}
			if _, err := s.says(true, e, "boss"); !errors.Is(err, approval.ErrDecided) {
				t.Error(err)
			}
			s.ask(e)
			s.is(e, idempotency.Succeeded, "succeeded  D-1", approval.Stale)
		})
		t.Run("cancels what a close shows not to have happened, and queues none of it", func(t *testing.T) {
			for _, ability := range []Ability{keyedShut, keyedHigh, floored} {
				s := set(t, ability)
				e := s.asks("k")
				s.forget(1)
				if now := s.ask(e); now.State != idempotency.Canceled || s.desk.called(kindSend) != 0 {
					t.Errorf("%+v: %+v after %v", ability, now, s.desk.calls)
				}
				s.is(e, idempotency.Canceled, "canceled approval-stale", approval.Stale)
			}
		})
		t.Run("sends nothing of what nobody is known to have agreed to", func(t *testing.T) {
			s := set(t, keyed)
			e := s.asks("k")
			s.forget(1)
			if now := s.settleDown(e); s.desk.called(kindSend) != 0 || now.State != idempotency.Unknown {
				t.Errorf("%+v after %v", now, s.desk.calls)
			}
		})
	})
}
