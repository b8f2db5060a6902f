package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/approval"
	"github.com/einmal/einmal/pkg/catalogue"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/review"
)

// asks accepts an operation that waits for a person.
func (s *stage) asks(key string) Effect {
	s.t.Helper()
	return s.acceptIn(idempotency.AwaitingApproval, s.account, key, catalogue.TicketMirror)
}

// approval reads the question about an effect.
func (s *stage) approval(e Effect) approval.Approval {
	s.t.Helper()
	a, err := approval.Get(s.db.Read(context.Background()), e.AccountID, e.ApprovalID)
	s.ok(err)
	return a
}

// says decides about an effect as somebody who was shown what there is.
func (s *stage) says(yes bool, e Effect, by string) (approval.Approval, error) {
	s.t.Helper()
	s.clock.advance(tick)
	return s.saysOf(s.approval(e).Fingerprint, yes, e, by)
}

func (s *stage) saysOf(fingerprint idempotency.Fingerprint, yes bool, e Effect, by string) (a approval.Approval, err error) {
	err = s.inTx(func(tx database.Tx) (err error) {
		a, err = s.box.DecideApproval(tx, e.AccountID, e.ApprovalID, approval.Decision{By: by, Approve: yes, Fingerprint: fingerprint})
		return err
	})
	return a, err
}

// approved accepts an operation, and lets a person say yes.
func (s *stage) approved(key string) Effect {
	s.t.Helper()
	e := s.asks(key)
	if a, err := s.says(true, e, "boss"); err != nil || a.State != approval.Approved {
		s.t.Fatalf("%+v, %v", a, err)
	}
	return s.now(e)
}

// is holds an effect, its operation's answer and its approval to what they must be in the end.
func (s *stage) is(e Effect, state idempotency.State, body string, of approval.State) {
	s.t.Helper()
	op, a := s.operation(e), s.approval(e)
	if op.State != state || !strings.HasPrefix(string(op.ResponseBody), body) || a.State != of {
		s.t.Errorf("the operation is %s with %q, want %s with %q; the approval %s, want %s", op.State, op.ResponseBody, state, body, a.State, of)
	}
}

func TestWhatAPersonIsAskedAbout(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, set func(*testing.T, Ability) *stage) {
		t.Run("is not sent before they have said yes, and once after that", func(t *testing.T) {
			s := set(t, keyed)
			e := s.asks("k")
			if now := s.send(e); now.State != idempotency.AwaitingApproval || s.desk.called(kindSend) != 0 || now.NextAt != nil {
				t.Fatalf("%+v after %v", now, s.desk.calls)
			}
			op := s.operation(e)
			if a := s.approval(e); op.State != idempotency.AwaitingApproval || op.Effect.ApprovalID != a.ID || a.State != approval.Pending ||
				a.Fingerprint != op.Fingerprint || a.RequestedBy != "agent" || !a.ExpiresAt.Equal(a.CreatedAt.Add(ttl)) || a.Facts != `{"title":"k"}` {
				t.Errorf("%+v asks %+v", op, a)
			}
			if a, err := s.says(true, e, "boss"); err != nil || a.State != approval.Approved || a.DecidedBy != "boss" || a.DecidedAt == nil {
				t.Errorf("%+v, %v", a, err)
			}
			s.build() // whoever has written the yes down may be dead by now
			s.send(e)
			s.is(e, idempotency.Succeeded, "succeeded", approval.Approved)
			if s.desk.called(kindSend) != 1 {
				t.Errorf("%v", s.desk.calls)
			}
			want := []string{"approved awaiting_approval>queued", "sent queued>running", "completed running>succeeded"}
			if diff := cmp.Diff(want, s.events(e)); diff != "" {
				t.Errorf("events (-want +got)\n%s", diff)
			}
		})
		t.Run("ends canceled when they say no, and they can say nothing else then", func(t *testing.T) {
			s := set(t, keyed)
			e := s.asks("k")
			if a, err := s.says(false, e, "boss"); err != nil || a.State != approval.Rejected {
				t.Errorf("%+v, %v", a, err)
			}
			s.is(e, idempotency.Canceled, "canceled approval-rejected", approval.Rejected)
			if _, err := s.says(true, e, "another"); !errors.Is(err, approval.ErrDecided) {
				t.Error(err)
			}
			want := []string{"canceled awaiting_approval>canceled", "rejected awaiting_approval>canceled"}
			if diff := cmp.Diff(want, slices.Sorted(slices.Values(s.events(e)))); diff != "" {
				t.Errorf("events (-want +got)\n%s", diff)
			}
		})
		t.Run("is not decided by who has asked, nor under another fingerprint", func(t *testing.T) {
			s := set(t, keyed)
			e := s.asks("k")
			if _, err := s.says(true, e, "agent"); !errors.Is(err, approval.ErrRequester) {
				t.Error(err)
			}
			if _, err := s.saysOf("v1:other", true, e, "boss"); !errors.Is(err, approval.ErrOtherFingerprint) {
				t.Error(err)
			}
			if s.approval(e).State != approval.Pending || s.now(e).State != idempotency.AwaitingApproval {
				t.Errorf("%+v", s.now(e))
			}
			_, err := s.saysOf("", true, Effect{AccountID: "globex", ApprovalID: e.ApprovalID}, "boss")
			if !errors.Is(err, approval.ErrNotFound) {
				t.Error(err)
			}
			s.ok(s.cancel(e))
		})
		t.Run("can be withdrawn, and then nobody is asked any more", func(t *testing.T) {
			s := set(t, keyed)
			e := s.asks("k")
			s.ok(s.cancel(e))
			s.is(e, idempotency.Canceled, "canceled person", approval.Stale)
			if _, err := s.says(true, e, "boss"); !errors.Is(err, approval.ErrDecided) {
				t.Error(err)
			}
		})
		t.Run("ends when nobody has decided in time, whoever finds that out", func(t *testing.T) {
			s := set(t, keyed)
			late, swept := s.asks("late"), s.asks("swept")
			s.clock.advance(ttl)
			young := s.asks("young")
			if a, err := s.says(true, late, "boss"); err != nil || a.State != approval.Expired {
				t.Errorf("%+v, %v", a, err)
			}
			s.is(late, idempotency.Canceled, "canceled approval-expired", approval.Expired)
			s.ok(s.box.expireApprovals(context.Background()))
			s.is(swept, idempotency.Canceled, "canceled approval-expired", approval.Expired)
			if s.now(young).State != idempotency.AwaitingApproval {
				t.Errorf("%+v", s.now(young))
			}
			want := []string{"canceled awaiting_approval>canceled", "expired awaiting_approval>canceled"}
			if diff := cmp.Diff(want, slices.Sorted(slices.Values(s.events(swept)))); diff != "" {
				t.Errorf("events (-want +got)\n%s", diff)
			}
			s.ok(s.cancel(young))
		})
		t.Run("is asked about until its deadline at most, since nothing is sent after that", func(t *testing.T) {
			s := set(t, keyed)
			s.box.longest = ttl / 2
			late, swept := s.asks("late"), s.asks("swept")
			if a := s.approval(late); !a.ExpiresAt.Equal(*late.Deadline) || !a.ExpiresAt.Equal(a.CreatedAt.Add(ttl/2)) {
				t.Errorf("it expires at %s, and the deadline is %s", a.ExpiresAt, late.Deadline)
			}
			s.clock.advance(ttl / 2)
			if a, err := s.says(true, late, "boss"); err != nil || a.State != approval.Expired || a.Approved {
				t.Errorf("%+v, %v", a, err)
			}
			s.ok(s.box.passDeadlines(context.Background(), s.target))
			s.ok(s.box.expireApprovals(context.Background()))
			for _, e := range []Effect{late, swept} {
				s.is(e, idempotency.Canceled, "canceled approval-expired", approval.Expired)
			}
		})
		t.Run("that can't be ended keeps no other from its end", func(t *testing.T) {
			s := set(t, keyed)
			settle := s.target.Settle
			bad := s.asks("bad")
			s.clock.advance(tick)
			good := s.asks("good")
			s.target.Settle = func(tx database.Tx, e Effect, end End) (idempotency.Answer, error) {
				if e.ID == bad.ID {
					return idempotency.Answer{}, errors.New("no domain row")
				}
				return settle(tx, e, end)
			}
			s.build()
			s.clock.advance(ttl)
			s.ok(s.box.expireApprovals(context.Background()))
			s.is(good, idempotency.Canceled, "canceled approval-expired", approval.Expired)
			if s.now(bad).State != idempotency.AwaitingApproval || s.approval(bad).State != approval.Pending {
				t.Errorf("%+v", s.now(bad))
			}
			s.target.Settle = settle
			s.build()
			s.ok(s.box.expireApprovals(context.Background()))
			s.is(bad, idempotency.Canceled, "canceled approval-expired", approval.Expired)
		})
		t.Run("ends with its approval, as long as it has certainly not been sent", func(t *testing.T) {
			s := set(t, keyed)
			e := s.approved("k")
			s.clock.advance(ttl - s.target.Timeout) // a call would not have ended by then
			s.send(e)
			s.is(e, idempotency.Canceled, "canceled approval-expired", approval.Expired)
			if a := s.approval(e); a.DecidedBy != "boss" || !a.Approved || s.desk.called(kindSend) != 0 {
				t.Errorf("%+v after %v", a, s.desk.calls)
			}
		})
		t.Run("ends expired, not stale, when its time has come between a take that was lost and the look why", func(t *testing.T) {
			s := set(t, keyed)
			e := s.approved("k")
			s.clock.advance(ttl - s.target.Timeout)
			s.ok(s.box.lostTake(context.Background(), s.target, e))
			s.is(e, idempotency.Canceled, "canceled approval-expired", approval.Expired)
		})
		t.Run("can't be asked about without a time for which that holds, nor sent on without a question", func(t *testing.T) {
			s := set(t, keyed)
			err := s.inTx(func(tx database.Tx) error {
				op := idempotency.Operation{AccountID: s.account, ID: "op_x", IdempotencyKey: "x", State: idempotency.AwaitingApproval}
				if err := s.box.Enqueue(tx, op, s.target.Name, "x", nil); err == nil {
					t.Error("enqueued without a question")
				}
				s.box.ttl = 0
				return s.box.Ask(tx, op, s.target.Name, "x", nil, approval.Question{})
			})
			if err == nil {
				t.Error("asked for no time")
			}
		})
	})
}

// After a send that may still arrive nothing is canceled, and nothing is sent again without a yes.
func TestAnApprovalThatEndsInDoubt(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, set func(*testing.T, Ability) *stage) {
		unknown := func(s *stage) Effect {
			e := s.sent(s.take(s.approved("k")), Evidence{Finding: Ambiguous})
			s.clock.advance(ttl)
			return e
		}
		t.Run("leaves what can be looked up to that, and then to a person", func(t *testing.T) {
			s := set(t, keyed)
			e := unknown(s)
			for range s.target.MaxAsks + 1 {
				if e = s.ask(e); e.State != idempotency.Unknown {
					t.Fatalf("%+v", e)
				}
				s.clock.advance(time.Hour)
			}
			if s.desk.called(kindSend) != 0 || len(s.reviews(review.Unknown)) != 1 {
				t.Errorf("%v, %+v", s.desk.calls, s.reviews(review.Unknown))
			}
			s.desk.onLookup = always(Confirmed)
			s.ask(e)
			s.is(e, idempotency.Succeeded, "succeeded", approval.Approved)
		})
		t.Run("is canceled where closing shows that nothing has happened", func(t *testing.T) {
			for name, ability := range map[string]Ability{"close": keyedShut, "floor": keyedHigh} {
				s := set(t, ability)
				e := s.ask(unknown(s))
				if e.State != idempotency.Canceled || s.desk.called(kindSend) != 0 {
					t.Errorf("%s: %+v after %v", name, e, s.desk.calls)
				}
				s.is(e, idempotency.Canceled, "canceled approval-expired", approval.Expired)
			}
		})
		t.Run("is not sent again from the queue, but asked about", func(t *testing.T) {
			s := set(t, keyedOnly)
			e := s.sent(s.take(s.approved("k")), Evidence{Finding: Ambiguous})
			s.clock.advance(time.Minute)
			if e = s.ask(e); e.State != idempotency.Queued || !e.inDoubt() {
				t.Fatalf("not queued in doubt: %+v", e)
			}
			s.clock.advance(ttl)
			if e = s.send(e); e.State != idempotency.Unknown || s.desk.called(kindSend) != 0 {
				t.Errorf("%+v after %v", e, s.desk.calls)
			}
			if e = s.ask(e); e.State != idempotency.Unknown || len(s.reviews(review.Unknown)) != 1 {
				t.Errorf("%+v, %+v", e, s.reviews(review.Unknown))
			}
		})
		t.Run("is not sent again when the world has changed, either", func(t *testing.T) {
			world := "1"
			s := set(t, keyed)
			s.target.World = func(database.Tx, Effect) (string, error) { return world, nil }
			s.build()
			e := s.sent(s.take(s.approved("k")), Evidence{Finding: Ambiguous})
			s.clock.advance(time.Minute)
			if e = s.ask(e); e.State != idempotency.Queued {
				t.Fatalf("not to be sent again: %+v", e)
			}
			world = "2"
			for range s.target.MaxAsks + 2 {
				s.clock.advance(6 * time.Minute) // far from the end of the approval
				if e = s.now(e); e.State == idempotency.Queued {
					e = s.send(e)
				} else {
					e = s.ask(e)
				}
			}
			if e.State != idempotency.Unknown || s.desk.called(kindSend) != 0 || len(s.reviews(review.Unknown)) != 1 || s.approval(e).State != approval.Stale {
				t.Errorf("%+v after %v; %+v", e, s.desk.calls, s.approval(e))
			}
		})
	})
}

func TestAWorldThatHasChanged(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, set func(*testing.T, Ability) *stage) {
		world := "1"
		in := func(t *testing.T) *stage {
			world = "1"
			s := set(t, keyed)
			s.target.World = func(_ database.Tx, e Effect) (string, error) { return world + " of " + string(e.Command), nil }
			s.build()
			return s
		}
		t.Run("since the question makes a yes come too late", func(t *testing.T) {
			s := in(t)
			e := s.asks("k")
			world = "2"
			if a, err := s.says(true, e, "boss"); err != nil || a.State != approval.Stale || a.DecidedBy != "" {
				t.Errorf("%+v, %v", a, err)
			}
			s.is(e, idempotency.Canceled, "canceled approval-stale", approval.Stale)
		})
		t.Run("since the yes keeps it from being sent, and nothing of the take is left", func(t *testing.T) {
			s := in(t)
			e := s.approved("k")
			world = "2"
			if e = s.send(e); s.desk.called(kindSend) != 0 || e.Fence != 0 || e.Attempts != 0 {
				t.Errorf("%+v after %v", e, s.desk.calls)
			}
			s.is(e, idempotency.Canceled, "canceled approval-stale", approval.Stale)
		})
		t.Run("and is again what it was changes nothing", func(t *testing.T) {
			s := in(t)
			e := s.approved("k")
			s.send(e)
			s.is(e, idempotency.Succeeded, "succeeded", approval.Approved)
		})
	})
}

// Of a decision, a second one, the sweep and a cancel at the same time one counts, and the effect is what that says. The database in the
// end is as fsck wants it.
func TestADecisionBesideOthers(t *testing.T) {
	t.Parallel()
	const rounds = 8
	each(t, func(t *testing.T, set func(*testing.T, Ability) *stage) {
		for name, other := range map[string]func(s *stage, e Effect) error{
			"another decision": func(s *stage, e Effect) error {
				_, err := s.saysOf(s.approval(e).Fingerprint, false, e, "another boss")
				return err
			},
			"a cancel": func(s *stage, e Effect) error {
				return s.inTx(func(tx database.Tx) error { _, err := s.box.Cancel(tx, e.AccountID, e.OperationID); return err })
			},
			"the sweep": func(s *stage, e Effect) error {
				s.clock.advance(ttl)
				return s.box.expireApprovals(context.Background())
			},
		} {
			t.Run(name, func(t *testing.T) {
				s := set(t, keyed)
				for i := range rounds {
					e := s.asks(fmt.Sprintf("k%d", i))
					fingerprint := s.approval(e).Fingerprint
					var both sync.WaitGroup
					both.Go(func() {
						_, err := s.saysOf(fingerprint, true, e, "boss")
						if err != nil && !errors.Is(err, approval.ErrDecided) {
							t.Errorf("decide: %v", err)
						}
					})
					both.Go(func() {
						if err := other(s, e); err != nil && !errors.Is(err, approval.ErrDecided) && !errors.Is(err, ErrNoEffect) {
							t.Errorf("%s: %v", name, err)
						}
					})
					both.Wait()
					now, a := s.now(e), s.approval(e)
					ends := map[approval.State]idempotency.State{
						approval.Approved: idempotency.Queued, approval.Rejected: idempotency.Canceled, approval.Expired: idempotency.Canceled, approval.Stale: idempotency.Canceled,
					}
					withdrawn := name == "a cancel" && now.State == idempotency.Canceled
					if ends[a.State] != now.State && !withdrawn {
						t.Errorf("the approval is %s, and the effect %s", a.State, now.State)
					}
				}
			})
		}
	})
}

// TestRuleFifteen holds the statement of a take to docs/protocol.md, rule 15, one thing at a time: of all these rows one is taken.
func TestRuleFifteen(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, set func(*testing.T, Ability) *stage) {
		s := set(t, keyed)
		e := s.approved("k")
		other := s.approved("other")
		undo := errors.New("undone")
		for name, c := range map[string]struct {
			change string
			args   []any
			taken  bool
		}{
			"as approved":                         {"UPDATE approvals SET reason = ''", nil, true},
			"a question":                          {"UPDATE approvals SET state = 'pending' WHERE id = ?", []any{e.ApprovalID}, false},
			"a no":                                {"UPDATE approvals SET state = 'rejected' WHERE id = ?", []any{e.ApprovalID}, false},
			"expired":                             {"UPDATE approvals SET state = 'expired' WHERE id = ?", []any{e.ApprovalID}, false},
			"stale":                               {"UPDATE approvals SET state = 'stale' WHERE id = ?", []any{e.ApprovalID}, false},
			"over now":                            {"UPDATE approvals SET expires_at = ? WHERE id = ?", []any{s.clock.now(), e.ApprovalID}, false},
			"over before the call is":             {"UPDATE approvals SET expires_at = ? WHERE id = ?", []any{s.clock.now().Add(s.target.Timeout), e.ApprovalID}, false},
			"over after that":                     {"UPDATE approvals SET expires_at = ? WHERE id = ?", []any{s.clock.now().Add(s.target.Timeout + tick), e.ApprovalID}, true},
			"cut short at the effect":             {"UPDATE effects SET approved_until = ? WHERE id = ?", []any{s.clock.now().Add(s.target.Timeout), e.ID}, false},
			"for another command":                 {"UPDATE approvals SET fingerprint = 'v1:other' WHERE id = ?", []any{e.ApprovalID}, false},
			"for a command that has changed":      {"UPDATE operations SET fingerprint = 'v1:other' WHERE id = ?", []any{e.OperationID}, false},
			"of another operation":                {"UPDATE effects SET approval_id = ? WHERE id = ?", []any{other.ApprovalID, e.ID}, false},
			"of another account":                  {"UPDATE approvals SET account_id = 'globex' WHERE id = ?", []any{e.ApprovalID}, false},
			"that is gone":                        {"DELETE FROM approvals WHERE id = ?", []any{e.ApprovalID}, false},
			"dropped since the effect was read":   {"UPDATE effects SET approval_id = '' WHERE id = ?", []any{e.ID}, false},
			"for a re-send, over since the first": {"UPDATE effects SET fence = 0, doubt = 0, attempts = 1, first_sent_at = ?, approved_until = ?", []any{s.clock.now(), s.clock.now()}, false},
			"for a re-send":                       {"UPDATE effects SET fence = 0, doubt = 0, attempts = 1, first_sent_at = ?", []any{s.clock.now()}, true},
		} {
			t.Run(name, func(t *testing.T) {
				err := s.inTx(func(tx database.Tx) error {
					if err := tx.Exec(c.change, c.args...).Error; err != nil {
						return err
					}
					taken, err := takeToSend(tx, e, s.target, "try_x")
					if err == nil && taken != c.taken {
						t.Errorf("taken: %v", taken)
					}
					return errors.Join(err, undo)
				})
				if !errors.Is(err, undo) {
					t.Error(err)
				}
			})
		}
	})
}

// The send must have begun, and ended, before the approval has.
func TestTheTimeToSendEndsWithTheApproval(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	target := Target{Timeout: time.Second, Lease: 10 * time.Second}
	for until, want := range map[time.Duration]time.Duration{time.Hour: 9 * time.Second, 5 * time.Second: 4 * time.Second} {
		end := now.Add(until)
		if got := target.sendBy(Effect{ApprovedUntil: &end}, now).Sub(now); got != want {
			t.Errorf("approved for %s: sent within %s, want %s", until, got, want)
		}
	}
}

// A yes that is not for this effect, whoever has written it there, lets nothing out, and is not looked at for ever.
func TestAnApprovalThatWasTamperedWith(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, set func(*testing.T, Ability) *stage) {
		s := set(t, keyed)
		e := s.approved("k")
		fingerprint := s.approval(e).Fingerprint
		write := func(to idempotency.Fingerprint) {
			s.ok(s.inTx(func(tx database.Tx) error {
				return tx.Exec("UPDATE approvals SET fingerprint = ? WHERE id = ?", to, e.ApprovalID).Error
			}))
		}
		write("v1:other")
		s.send(e)
		s.is(e, idempotency.Canceled, "canceled approval-stale", approval.Stale)
		if s.desk.called(kindSend) != 0 {
			t.Errorf("%v", s.desk.calls)
		}
		write(fingerprint)
	})
}

// The rows of each step that only what asks a person takes.
func TestTheStepsOfAnApproval(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, set func(*testing.T, Ability) *stage) {
		s := set(t, keyedOnly)
		type place struct {
			state   idempotency.State
			inDoubt bool
		}
		places := []place{
			{idempotency.AwaitingApproval, false},
			{idempotency.Queued, false},
			{idempotency.Queued, true},
			{idempotency.Running, true},
			{idempotency.Unknown, true},
			{idempotency.Succeeded, false},
			{idempotency.Failed, false},
			{idempotency.Canceled, false},
		}
		e := s.asks("k")
		for name, c := range map[string]struct {
			step func(tx database.Tx, e Effect) (bool, error)
			from []place
			to   idempotency.State
		}{
			"approve":             {func(tx database.Tx, e Effect) (bool, error) { return approve(tx, e, &tx.Now) }, places[:1], idempotency.Queued},
			"unapproved":          {unapproved, places[:2], idempotency.Canceled},
			"unapproved in doubt": {unapprovedInDoubt, places[2:3], idempotency.Unknown},
		} {
			for _, at := range places {
				for _, fence := range []int64{0, 1} { // the effect's, and another
					var doubt any
					if at.inDoubt {
						doubt = 0
					}
					undo := errors.New("undone")
					err := s.inTx(func(tx database.Tx) error {
						if err := tx.Exec("UPDATE effects SET state = ?, doubt = ? WHERE id = ?", at.state, doubt, e.ID).Error; err != nil {
							return err
						}
						given := e
						given.Fence = fence
						changed, err := c.step(tx, given)
						if err != nil {
							return err
						}
						now, err := find(tx.DB, e)
						if err != nil {
							return err
						}
						applies := fence == 0 && (at == c.from[0] || at == c.from[len(c.from)-1])
						if changed != applies || applies && now.State != c.to || !applies && now.State != at.state {
							t.Errorf("%s from %+v under fence %d: changed %v, now %s", name, at, fence, changed, now.State)
						}
						return undo
					})
					if !errors.Is(err, undo) {
						t.Error(err)
					}
				}
			}
		}
		s.ok(s.cancel(e))
	})
}
