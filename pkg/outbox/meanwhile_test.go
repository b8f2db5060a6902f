package outbox

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/approval"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/review"
)

// meanwhile runs other while first has changed an effect and not committed yet, until that has to wait, and returns what other returns.
// It is for PostgreSQL: on SQLite one transaction follows the other.
func (s *stage) meanwhile(first func(tx database.Tx) error, other func() error) error {
	s.t.Helper()
	ended := make(chan error, 1)
	s.ok(s.inTx(func(tx database.Tx) error {
		if err := first(tx); err != nil {
			return err
		}
		s.clock.advance(tick)
		go func() { ended <- other() }()
		for waiting := 0; waiting == 0; {
			err := s.db.Read(s.t.Context()).Raw("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'").Scan(&waiting).Error
			if err != nil {
				return err
			}
		}
		return nil
	}))
	return <-ended
}

// What is told of an effect is about the row that was changed, not about one that was read before somebody else changed it.
func TestAnEffectThatIsChangedMeanwhile(t *testing.T) {
	t.Parallel()
	url := dbtest.URL(t, database.Postgres)
	yes := func(s *stage, e Effect) func(tx database.Tx) error {
		fingerprint := s.approval(e).Fingerprint
		return func(tx database.Tx) error {
			_, err := s.box.DecideApproval(tx, e.AccountID, e.ApprovalID, approval.Decision{By: "boss", Approve: true, Fingerprint: fingerprint})
			return err
		}
	}
	told := func(s *stage, e Effect, want ...string) {
		s.t.Helper()
		if diff := cmp.Diff(want, slices.Sorted(slices.Values(s.events(e)))); diff != "" {
			s.t.Errorf("events (-want +got)\n%s", diff)
		}
	}

	t.Run("by a yes is canceled from the queue", func(t *testing.T) {
		s := newStage(t, url, keyed)
		e := s.asks("k")
		s.ok(s.meanwhile(yes(s, e), func() error { return s.cancel(e) }))
		told(s, e, "approved awaiting_approval>queued", "canceled queued>canceled")
	})
	t.Run("by a yes expires from the queue", func(t *testing.T) {
		s := newStage(t, url, keyed)
		e := s.asks("k")
		s.ok(s.meanwhile(yes(s, e), func() error {
			s.clock.advance(ttl)
			return s.box.expireApprovals(context.Background())
		}))
		s.is(e, idempotency.Canceled, "canceled approval-expired", approval.Expired)
		told(s, e, "approved awaiting_approval>queued", "canceled queued>canceled", "expired queued>canceled")
	})
	t.Run("by who learns its name has no second one unseen", func(t *testing.T) {
		s := newStage(t, url, keyed)
		late := s.take(s.accept("k"))
		s.clock.advance(time.Minute)
		taken := s.takeToAsk(late)
		s.ok(s.meanwhile(func(tx database.Tx) error {
			_, err := accepted(tx, taken, "D-1", tx.Now.Add(time.Second))
			return err
		}, func() error {
			ev := Evidence{Finding: Confirmed, Reference: "D-2"}
			return s.box.settle(context.Background(), s.target, late, ev, func(e Effect, now time.Time) step { return s.target.afterSend(e, ev, now) })
		}))
		if op := s.operation(late); string(op.ResponseBody) != "succeeded  D-1" || s.now(late).Reference != "D-1" {
			t.Errorf("%s, %+v", op.ResponseBody, s.now(late))
		}
		if n := len(s.reviews(review.Contradiction)); n != 1 {
			t.Errorf("%d people are asked about the second name", n)
		}
	})
	t.Run("by who learns that it has happened is not declared to have failed", func(t *testing.T) {
		s := newStage(t, url, keyedShut)
		e := s.sent(s.take(s.accept("k")), Evidence{Finding: Ambiguous})
		s.clock.advance(time.Minute)
		taken := s.takeToAsk(e)
		s.clock.advance(time.Minute) // whoever has taken it is late
		err := s.meanwhile(func(tx database.Tx) error {
			ev := Evidence{Finding: Confirmed, Reference: "D-1"}
			return s.box.follow(tx, s.target, taken, taken, ev, succeeds(taken, ev))
		}, func() error {
			return s.inTx(func(tx database.Tx) error {
				return s.box.Decide(tx, e.AccountID, e.OperationID, idempotency.Failed, "")
			})
		})
		if op := s.operation(e); !errors.Is(err, ErrNoEffect) || op.State != idempotency.Succeeded {
			t.Errorf("%v; %s", err, op.State)
		}
	})
	t.Run("by who begins to ask, so that a person is needed, is not let go by one who says nothing of it", func(t *testing.T) {
		s := newStage(t, url, unable)
		e := s.take(s.accept("k"))
		s.clock.advance(25 * time.Hour)
		s.ok(s.box.passDeadlines(context.Background(), s.target))
		e = s.now(e)
		asked := s.reviews(review.Deadline)
		if len(asked) != 1 || e.ReviewID != asked[0].ID {
			t.Fatalf("%+v, %+v", e, asked)
		}
		err := s.meanwhile(func(tx database.Tx) error {
			_, err := takeToAsk(tx, e, s.target, "try_x")
			return err
		}, func() error {
			return s.inTx(func(tx database.Tx) error {
				r, err := review.Resolve(tx, s.account, asked[0].ID, "operator", "", review.Evidence{Source: "operator", At: tx.Now, Says: "I know"})
				if err != nil {
					return err
				}
				return s.box.Resolve(tx, r, "", "")
			})
		})
		if !errors.Is(err, ErrUndecided) || s.now(e).ReviewID != asked[0].ID {
			t.Errorf("%v; %+v", err, s.now(e))
		}
		s.clock.advance(time.Minute)
		s.ask(e)
		if open := slices.DeleteFunc(s.reviews(review.Deadline), func(r review.Review) bool { return r.State != review.StateOpen }); len(open) != 1 {
			t.Errorf("%+v", open)
		}
	})
}
