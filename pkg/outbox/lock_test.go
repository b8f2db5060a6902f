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

// locked gives the stage's target a lock that hands out tokens from 1 on, and keeps what it learns.
func (s *stage) locked() (learned *[]Evidence, lock *Lock) {
	var token int64
	learned = &[]Evidence{}
	lock = &Lock{
		Draw: func(database.Tx, Effect) (int64, error) { token++; return token, nil },
		Read: func(database.Tx, Effect) (int64, error) { return token, nil },
		Learn: func(_ database.Tx, _ Effect, ev Evidence) error {
			*learned = append(*learned, ev)
			return nil
		},
		MayDecide: func(database.Tx, Effect) error { return nil },
	}
	s.target.Lock = lock
	s.build()
	return learned, lock
}

func TestALock(t *testing.T) {
	each(t, func(t *testing.T, set func(*testing.T, Ability) *stage) {
		t.Run("gives each send a token of its own, and each question the last", func(t *testing.T) {
			s := set(t, keyedHigh)
			learned, _ := s.locked()
			var tokens []int64
			with := func(f Finding) func(Effect) Evidence {
				return func(e Effect) Evidence {
					tokens = append(tokens, e.Token)
					return Evidence{Finding: f, Floor: e.Token + 10, Reference: "D-1"}
				}
			}
			s.desk.onSend, s.desk.onClose, s.desk.onLookup = with(Ambiguous), with(Closed), with(Confirmed)
			e := s.send(s.accept("k"))
			s.clock.advance(time.Minute)
			if e = s.ask(e); e.State != idempotency.Queued {
				t.Fatalf("closed: %+v", e)
			}
			s.desk.onSend = with(Accepted)
			e = s.send(e)
			s.clock.advance(time.Minute)
			if e = s.ask(e); e.State != idempotency.Succeeded {
				t.Fatalf("found: %+v", e)
			}
			if diff := cmp.Diff([]int64{1, 1, 2, 2}, tokens); diff != "" {
				t.Errorf("tokens (-want +got)\n%s", diff)
			}
			var floors []int64
			for _, ev := range *learned {
				floors = append(floors, ev.Floor)
			}
			if diff := cmp.Diff([]int64{11, 11, 12, 12}, floors); diff != "" {
				t.Errorf("floors that were learned (-want +got)\n%s", diff)
			}
		})

		t.Run("that an effect does not hold keeps it from being sent, and from being taken", func(t *testing.T) {
			s := set(t, keyedHigh)
			_, lock := s.locked()
			notOurs := errors.New("not ours")
			lock.Draw = func(database.Tx, Effect) (int64, error) { return 0, notOurs }
			e := s.accept("k")
			s.clock.advance(tick)
			if err := s.box.send(t.Context(), s.target, s.now(e)); !errors.Is(err, notOurs) {
				t.Errorf("got %v", err)
			}
			if now := s.now(e); now.State != idempotency.Queued || now.Fence != 0 || now.Attempts != 0 || s.desk.called(kindSend) != 0 {
				t.Errorf("%d sends, %+v", s.desk.called(kindSend), now)
			}
			lock.Draw = func(database.Tx, Effect) (int64, error) { return 1, nil }
			if e = s.send(e); e.State != idempotency.Succeeded {
				t.Errorf("%+v", e)
			}
		})

		t.Run("is not set free by a person's word while a send may arrive", func(t *testing.T) {
			s := set(t, keyedHigh)
			_, lock := s.locked()
			lock.MayDecide = func(database.Tx, Effect) error { return ErrNotClosed }
			s.desk.onSend = always(Different)
			e := s.send(s.accept("k"))
			decide := func(state idempotency.State) error {
				return s.inTx(func(tx database.Tx) error { return s.box.Decide(tx, s.account, e.OperationID, state, "") })
			}
			if err := decide(idempotency.Succeeded); !errors.Is(err, ErrNotClosed) || s.now(e).State != idempotency.Unknown {
				t.Errorf("a yes: %v, %+v", err, s.now(e))
			}
			if err := decide(idempotency.Failed); err != nil || s.now(e).State != idempotency.Unknown || s.now(e).CancelAskedAt == nil {
				t.Errorf("a no: %v, %+v", err, s.now(e))
			}
			if e = s.ask(e); e.State != idempotency.Canceled || s.desk.called(kindClose) != 1 || s.desk.called(kindSend) != 1 {
				t.Errorf("closed %d times, sent %d times, %+v", s.desk.called(kindClose), s.desk.called(kindSend), e)
			}

			lock.MayDecide = func(database.Tx, Effect) error { return nil }
			e = s.send(s.accept("closed"))
			if err := decide(idempotency.Failed); err != nil || s.now(e).State != idempotency.Failed {
				t.Errorf("of a closed one: %v, %+v", err, s.now(e))
			}
		})
	})
}

func TestATurn(t *testing.T) {
	each(t, func(t *testing.T, set func(*testing.T, Ability) *stage) {
		waiting := func(t *testing.T) (*stage, Effect) {
			s := set(t, keyedHigh)
			result, err := s.exec.Do(t.Context(), request(s.account, "k", "deployment.create"), func(tx database.Tx, op idempotency.Operation) (idempotency.Answer, error) {
				op.State = idempotency.Queued
				return idempotency.Answer{State: idempotency.Queued}, s.box.Wait(tx, op, s.target.Name, "rollout", []byte("k"))
			})
			s.ok(err)
			var e Effect
			s.ok(s.db.Read(t.Context()).Where("account_id = ? AND operation_id = ?", s.account, result.Operation.ID).Take(&e).Error)
			return s, e
		}
		in := func(s *stage, do func(tx database.Tx, account, operation string) error, e Effect) error {
			s.clock.advance(tick)
			return s.inTx(func(tx database.Tx) error { return do(tx, s.account, e.OperationID) })
		}

		refuse := func(s *stage) func(tx database.Tx, account, operation string) error {
			return func(tx database.Tx, account, operation string) error {
				return s.box.Refuse(tx, account, operation, "the world")
			}
		}
		t.Run("is waited for without being due", func(t *testing.T) {
			s, e := waiting(t)
			s.clock.advance(time.Hour / 2) // of the hour that a release is worth waiting for
			if e = s.send(e); e.State != idempotency.Queued || e.NextAt != nil || s.desk.called(kindSend) != 0 {
				t.Fatalf("%+v", e)
			}
			s.ok(in(s, s.box.Turn, e))
			if err := in(s, s.box.Turn, e); !errors.Is(err, ErrNotWaiting) {
				t.Errorf("a second turn: %v", err)
			}
			if e = s.send(e); e.State != idempotency.Succeeded {
				t.Errorf("%+v", e)
			}
			for _, err := range []error{in(s, s.box.Turn, e), in(s, refuse(s), e)} { // not that of the effect that hands a lock on
				if !errors.Is(err, ErrNotWaiting) || errors.Is(err, ErrNoEffect) {
					t.Errorf("after its end: %v", err)
				}
			}
		})

		t.Run("can be refused while nothing was sent, and then no more", func(t *testing.T) {
			s, e := waiting(t)
			s.ok(in(s, refuse(s), e))
			if op := s.operation(e); op.State != idempotency.Failed || string(op.ResponseBody) != "failed the world " {
				t.Errorf("%s, %s", op.State, op.ResponseBody)
			}
			s, e = waiting(t)
			s.ok(in(s, s.box.Turn, e))
			s.desk.onSend = always(Ambiguous)
			s.send(e)
			if err := in(s, refuse(s), e); !errors.Is(err, ErrNotWaiting) {
				t.Errorf("refused after it was sent: %v", err)
			}
			s.desk.onLookup, s.desk.onClose = always(Confirmed), always(Confirmed)
			s.clock.advance(time.Minute)
			s.ask(e)
		})

		t.Run("ends when another effect has broken it off, whoever holds it, once", func(t *testing.T) {
			s, e := waiting(t)
			s.ok(in(s, s.box.Turn, e))
			s.desk.onSend = func(Effect) Evidence { return Evidence{Finding: Accepted, Reference: "D-1"} }
			e = s.send(e)
			s.clock.advance(time.Minute)
			held := s.takeToAsk(e)
			stop := func(tx database.Tx, account, operation string) error {
				return s.box.Stopped(tx, account, operation, Evidence{Finding: Stopped})
			}
			s.ok(in(s, stop, e))
			s.ok(in(s, stop, e))
			if op := s.operation(e); op.State != idempotency.Canceled || string(op.ResponseBody) != "canceled stop D-1" {
				t.Errorf("%s, %s", op.State, op.ResponseBody)
			}
			if now := s.sent(held, Evidence{Finding: Stopped}); now.State != idempotency.Canceled {
				t.Errorf("%+v", now)
			}
			if told := s.reviews(review.Contradiction); len(told) != 0 {
				t.Errorf("%+v", told)
			}
		})

		t.Run("that is told to be broken off after it has succeeded is told to a person", func(t *testing.T) {
			s, e := waiting(t)
			s.ok(in(s, s.box.Turn, e))
			if e = s.send(e); e.State != idempotency.Succeeded {
				t.Fatalf("%+v", e)
			}
			s.ok(in(s, func(tx database.Tx, account, operation string) error {
				return s.box.Stopped(tx, account, operation, Evidence{Finding: Confirmed, Reference: "stop-1", Says: "is stopped"})
			}, e))
			if told := s.reviews(review.Contradiction); len(told) != 1 || s.now(e).State != idempotency.Succeeded {
				t.Errorf("%+v, %+v", told, s.now(e))
			}
		})
	})
}
