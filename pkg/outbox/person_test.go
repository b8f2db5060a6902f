package outbox

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/catalogue"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/review"
)

// reach brings a new effect into a state. In doubt: a send of it may still arrive.
func (s *stage) reach(state idempotency.State, inDoubt bool) Effect {
	s.t.Helper()
	if state == idempotency.AwaitingApproval {
		return s.acceptIn(state, s.account, "k", catalogue.TicketMirror)
	}
	e := s.accept("k")
	switch {
	case state == idempotency.Queued && !inDoubt:
	case state == idempotency.Running:
		e = s.take(e)
	case state == idempotency.Succeeded:
		e = s.send(e)
	case state == idempotency.Failed:
		e = s.sent(s.take(e), Evidence{Finding: Refused})
	case state == idempotency.Unknown:
		e = s.sent(s.take(e), Evidence{Finding: Ambiguous})
	case state == idempotency.Queued:
		s.sent(s.take(e), Evidence{Finding: Ambiguous})
		s.clock.advance(time.Minute)
		e = s.ask(e)
	}
	if e.State != state || e.inDoubt() != inDoubt {
		s.t.Fatalf("not %s: %+v", state, e)
	}
	return e
}

func (s *stage) cancel(e Effect) error {
	s.t.Helper()
	s.clock.advance(tick)
	return s.inTx(func(tx database.Tx) error { _, err := s.box.Cancel(tx, e.AccountID, e.OperationID); return err })
}

func (s *stage) decide(e Effect, state idempotency.State, reference string) error {
	s.t.Helper()
	s.clock.advance(tick)
	return s.inTx(func(tx database.Tx) error { return s.box.Decide(tx, e.AccountID, e.OperationID, state, reference) })
}

// resolve resolves a review as somebody who says how its effect has ended.
func (s *stage) resolve(id string, e Effect, as idempotency.State) error {
	s.t.Helper()
	s.clock.advance(tick)
	return s.inTx(func(tx database.Tx) error {
		r, err := review.Resolve(tx, e.AccountID, id, "olga", as, review.Evidence{Source: "olga", At: tx.Now, Says: "seen"})
		if err != nil {
			return err
		}
		return s.box.Resolve(tx, r, as, "")
	})
}

// settleDown lets workers do what is due until nothing is, or a person is asked.
func (s *stage) settleDown(e Effect) Effect {
	s.t.Helper()
	for range 20 {
		e = s.now(e)
		if e.NextAt == nil || e.ReviewID != "" {
			return e
		}
		s.clock.advance(time.Minute)
		if e.State == idempotency.Queued {
			s.send(e)
		} else {
			s.ask(e)
		}
	}
	s.t.Fatalf("it never rests: %+v", e)
	return e
}

func TestCancel(t *testing.T) {
	t.Parallel()
	abilities := map[string]Ability{"key": keyed, "key and close": keyedShut, "floor": floored, "close": shutting, "look-up": lookedUp, "none": unable}
	each(t, func(t *testing.T, set func(*testing.T, Ability) *stage) {
		for name, ability := range abilities {
			for _, c := range []struct {
				state   idempotency.State
				inDoubt bool
			}{
				{idempotency.AwaitingApproval, false},
				{idempotency.Queued, false},
				{idempotency.Queued, true},
				{idempotency.Running, true},
				{idempotency.Unknown, true},
				{idempotency.Succeeded, false},
				{idempotency.Failed, false},
			} {
				if c.state == idempotency.Queued && c.inDoubt && !ability.Key {
					continue // only keys bring it there
				}
				var want error
				end := idempotency.Canceled
				switch {
				case c.state.Final():
					want, end = ErrNoEffect, c.state
				case c.inDoubt && !ability.Close:
					want, end = ErrRunning, ""
				}
				t.Run(fmt.Sprintf("of %s (in doubt: %v), %s: %v, then %s", c.state, c.inDoubt, name, want, end), func(t *testing.T) {
					s := set(t, ability)
					e := s.reach(c.state, c.inDoubt)
					sends := s.desk.called(kindSend)
					if err := s.cancel(e); !errors.Is(err, want) {
						t.Fatalf("got %v", err)
					}
					if now := s.now(e); c.inDoubt && !now.inDoubt() {
						t.Errorf("no doubt is left before anybody was asked: %+v", now)
					}
					if errors.Is(want, ErrRunning) {
						return
					}
					e = s.settleDown(e)
					if op := s.operation(e); op.State != end || s.desk.called(kindSend) != sends {
						t.Errorf("%s after %d more sends: %+v", op.State, s.desk.called(kindSend)-sends, e)
					}
				})
			}
		}
		t.Run("of a running effect that turns out not to have been sent cancels it", func(t *testing.T) {
			s := set(t, floored)
			e := s.reach(idempotency.Running, true)
			s.ok(s.cancel(e))
			e = s.sent(e, Evidence{Finding: NotSent, RetryAfter: time.Hour})
			if e.NextAt == nil || e.NextAt.After(s.db.Now()) { // what the target asked for concerns no send any more
				t.Errorf("it waits until %v, at %s: %+v", e.NextAt, s.db.Now(), e)
			}
			e = s.settleDown(e)
			if op := s.operation(e); op.State != idempotency.Canceled || s.desk.called(kindSend) != 0 {
				t.Errorf("%s %q after %d sends", op.State, op.ResponseBody, s.desk.called(kindSend))
			}
		})
		t.Run("of an effect that happened all the same ends succeeded", func(t *testing.T) {
			s := set(t, floored)
			e := s.reach(idempotency.Running, true)
			s.ok(s.cancel(e))
			if e = s.sent(e, Evidence{Finding: Confirmed, Reference: "D-1"}); e.State != idempotency.Succeeded {
				t.Errorf("%+v", e)
			}
		})
		t.Run("while the target is being closed cancels", func(t *testing.T) {
			s := set(t, shutting)
			e := s.reach(idempotency.Unknown, true)
			s.desk.onClose = func(Effect) Evidence {
				s.ok(s.cancel(e))
				return Evidence{Finding: Closed}
			}
			s.clock.advance(time.Minute)
			if e = s.ask(e); e.State != idempotency.Canceled {
				t.Errorf("%+v", e)
			}
		})
		t.Run("twice asks once", func(t *testing.T) {
			s := set(t, floored)
			e := s.reach(idempotency.Unknown, true)
			s.ok(s.cancel(e))
			asked := s.now(e).CancelAskedAt
			s.ok(s.cancel(e))
			if again := s.now(e).CancelAskedAt; !again.Equal(*asked) {
				t.Errorf("%s, then %s", asked, again)
			}
		})
		t.Run("of another account's operation finds nothing", func(t *testing.T) {
			s := set(t, floored)
			e := s.reach(idempotency.Queued, false)
			e.AccountID = "other"
			if err := s.cancel(e); !errors.Is(err, ErrNoEffect) {
				t.Errorf("got %v", err)
			}
		})
	})
}

func TestDecide(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, set func(*testing.T, Ability) *stage) {
		for _, state := range []idempotency.State{idempotency.Succeeded, idempotency.Failed, idempotency.Canceled} {
			t.Run(fmt.Sprintf("that it has %s ends an effect that waits for a person", state), func(t *testing.T) {
				s := set(t, unable)
				e := s.reach(idempotency.Unknown, true)
				s.ok(s.decide(e, state, "D-9"))
				before := e
				e = s.now(e)
				if op := s.operation(e); op.State != state || e.State != state || e.Fence != before.Fence+1 || e.inDoubt() || e.Reference != "D-9" {
					t.Errorf("%s, %+v", op.State, e)
				}
				if questions := s.reviews(review.Unknown); len(questions) != 1 || questions[0].State != review.StateResolved {
					t.Errorf("%+v", questions)
				}
			})
		}
		t.Run("while somebody asks the target has to wait", func(t *testing.T) {
			s := set(t, lookedUp)
			e := s.reach(idempotency.Unknown, true)
			s.clock.advance(time.Minute)
			e = s.takeToAsk(e)
			if err := s.decide(e, idempotency.Failed, ""); !errors.Is(err, ErrRunning) {
				t.Fatalf("got %v", err)
			}
			s.clock.advance(s.target.Lease)
			s.ok(s.decide(e, idempotency.Failed, ""))
		})
		t.Run("counts for more than what was asked before", func(t *testing.T) {
			s := set(t, floored)
			e := s.reach(idempotency.Unknown, true)
			s.clock.advance(time.Minute)
			asker := s.takeToAsk(e)
			s.clock.advance(s.target.Lease)
			s.ok(s.decide(e, idempotency.Succeeded, "D-1"))
			decided := s.now(e)
			s.ok(s.box.settle(t.Context(), s.target, asker, Evidence{Finding: Closed}, func(e Effect, now time.Time) step {
				return s.target.afterAsk(e, kindClose, Evidence{Finding: Closed}, now)
			}))
			if diff := cmp.Diff(decided, s.now(e)); diff != "" {
				t.Error(diff)
			}
		})
		for name, c := range map[string]struct {
			ability Ability
			shows   func(Effect) Evidence
			end     idempotency.State
		}{
			"that nothing has happened closes first where the target can, and withdraws it": {shutting, always(Closed), idempotency.Canceled},
			"that nothing has happened gives way to what a close shows":                     {floored, always(Confirmed), idempotency.Succeeded},
		} {
			t.Run(name, func(t *testing.T) {
				s := set(t, c.ability)
				s.desk.onClose = c.shows
				e := s.reach(idempotency.Unknown, true)
				s.ok(s.decide(e, idempotency.Failed, ""))
				if e = s.now(e); e.State != idempotency.Unknown || e.CancelAskedAt == nil || s.operation(e).State.Final() {
					t.Fatalf("before the target has closed: %+v", e)
				}
				if e = s.ask(e); e.State != c.end || s.operation(e).State != c.end || s.desk.called(kindClose) != 1 || s.desk.called(kindSend) != 0 {
					t.Errorf("%+v", e)
				}
			})
		}
		t.Run("that nothing has happened is not the last that a person hears, should the close never come about", func(t *testing.T) {
			s := set(t, floored)
			s.desk.onClose = always(Ambiguous)
			e := s.settleDown(s.reach(idempotency.Unknown, true))
			first := s.reviews(review.Unknown)[0].ID
			if err := s.resolve(first, e, idempotency.Failed); err != nil {
				t.Fatal(err)
			}
			if told := s.events(e); slices.Contains(told, "resolved unknown>failed") { // nothing has failed yet, and nothing will
				t.Error(told)
			}
			asks := s.desk.called(kindClose)
			e = s.settleDown(e)
			all := s.reviews(review.Unknown)
			if len(all) != 2 || all[0].State != review.StateOpen || all[0].ID != e.ReviewID || e.ReviewID == first || e.State != idempotency.Unknown {
				t.Fatalf("%+v, asked about in %+v", e, all)
			}
			if more := s.desk.called(kindClose) - asks; more != s.target.MaxAsks {
				t.Errorf("asked about again after %d closes, want %d", more, s.target.MaxAsks)
			}
			s.desk.onClose = always(Closed)
			s.clock.advance(time.Hour)
			if e = s.ask(e); e.State != idempotency.Canceled || s.reviews(review.Unknown)[0].State != review.StateResolved {
				t.Errorf("%+v", e)
			}
		})
		t.Run("counts where a close after every send has shown something else than was asked for", func(t *testing.T) {
			s := set(t, shutting)
			s.desk.onClose = func(Effect) Evidence { return Evidence{Finding: Different, Says: "another amount", Shows: "50"} }
			e := s.reach(idempotency.Unknown, true)
			s.clock.advance(time.Minute)
			e = s.ask(e)
			if e.Shown != "50" || e.NextAt != nil || e.ReviewID == "" {
				t.Fatalf("%+v", e)
			}
			s.ok(s.decide(e, idempotency.Failed, ""))
			if e = s.now(e); e.State != idempotency.Failed {
				t.Errorf("%+v", e)
			}
		})
		for _, state := range []idempotency.State{idempotency.AwaitingApproval, idempotency.Queued, idempotency.Running} {
			t.Run(fmt.Sprintf("about one that is %s is too early", state), func(t *testing.T) {
				s := set(t, lookedUp)
				e := s.reach(state, state == idempotency.Running)
				s.clock.advance(time.Minute)
				if err := s.decide(e, idempotency.Failed, ""); !errors.Is(err, ErrRunning) {
					t.Errorf("got %v", err)
				}
			})
		}
		t.Run("about one that has ended finds nothing", func(t *testing.T) {
			s := set(t, lookedUp)
			if err := s.decide(s.reach(idempotency.Succeeded, false), idempotency.Failed, ""); !errors.Is(err, ErrNoEffect) {
				t.Errorf("got %v", err)
			}
		})
		t.Run("in a process that does not serve the target is refused", func(t *testing.T) {
			s := set(t, unable)
			e := s.reach(idempotency.Unknown, true)
			s.target.Name = "another"
			s.build()
			if err := s.decide(e, idempotency.Failed, ""); err == nil || errors.Is(err, ErrNoEffect) || errors.Is(err, ErrRunning) {
				t.Errorf("got %v", err)
			}
		})
	})
}

func TestReconcile(t *testing.T) {
	t.Parallel()
	s := newStage(t, dbtest.URL(t, database.SQLite), lookedUp)
	reconcile := func(e Effect) Effect {
		t.Helper()
		s.ok(s.inTx(func(tx database.Tx) error { _, err := s.box.Reconcile(tx, e.AccountID, e.OperationID); return err }))
		return s.now(e)
	}
	e := s.reach(idempotency.Running, true)
	t.Run("leaves a live lease alone", func(t *testing.T) {
		if diff := cmp.Diff(s.now(e), reconcile(e)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("makes an unknown effect due now", func(t *testing.T) {
		s.sent(e, Evidence{Finding: Ambiguous})
		if now := reconcile(e); !now.NextAt.Equal(s.db.Now()) {
			t.Errorf("%+v", now)
		}
	})
	t.Run("again and again adds nothing to a review that says it already", func(t *testing.T) {
		e = s.settleDown(e)
		known := len(s.reviews(review.Unknown)[0].Evidence)
		for range 5 {
			reconcile(e)
			e = s.ask(e)
		}
		if r := s.reviews(review.Unknown)[0]; len(r.Evidence) != known || e.ReviewID != r.ID {
			t.Errorf("%d times %+v", len(r.Evidence)-known, r.Evidence)
		}
	})
	t.Run("has one that waits for a person asked again, and settled if it is found", func(t *testing.T) {
		e = s.settleDown(e)
		if e.ReviewID == "" {
			t.Fatalf("%+v", e)
		}
		s.desk.onLookup = always(Confirmed)
		reconcile(e)
		if e = s.ask(e); e.State != idempotency.Succeeded || s.reviews(review.Unknown)[0].State != review.StateResolved {
			t.Errorf("%+v", e)
		}
	})
	t.Run("says of one that has ended that there is none", func(t *testing.T) {
		err := s.inTx(func(tx database.Tx) error { _, err := s.box.Reconcile(tx, e.AccountID, e.OperationID); return err })
		if !errors.Is(err, ErrNoEffect) {
			t.Errorf("got %v", err)
		}
	})
}
