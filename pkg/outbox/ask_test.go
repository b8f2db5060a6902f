package outbox

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/review"
)

func TestWhatFollowsFromAsking(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	unknown := Effect{State: idempotency.Unknown, Attempts: 1, Asks: 1, FirstSentAt: &now, Doubt: new(int64)}
	with := func(e Effect, change func(*Effect)) Effect { change(&e); return e }
	canceling := with(unknown, func(e *Effect) { e.CancelAskedAt = &now })
	lastSend := with(unknown, func(e *Effect) { e.Attempts = 3 })
	lastAsk := with(unknown, func(e *Effect) { e.Asks = 2 })
	lastOfAll := with(lastSend, func(e *Effect) { e.Asks = 2 })
	told := with(lastAsk, func(e *Effect) { e.ReviewID = "rev_1" })
	going := with(unknown, func(e *Effect) { e.State, e.AcceptedAt = idempotency.Running, &now })
	goingLast := with(going, func(e *Effect) { e.Asks = 2 })

	for _, c := range []struct {
		name    string
		of      Ability
		e       Effect
		kind    string
		finding Finding
		want    string
	}{
		{"found", lookedUp, unknown, kindLookup, Confirmed, "succeeded"},
		{"found by a close", floored, canceling, kindClose, Confirmed, "succeeded"},
		{"a verdict under our key", keyed, unknown, kindLookup, Verdict, "failed by verdict"},
		{"a refusal of one send, found where there are no keys", lookedUp, unknown, kindLookup, Verdict, "unknown later"},
		{"going on", lookedUp, unknown, kindLookup, Accepted, "running later"},

		{"not found, with keys", keyed, unknown, kindLookup, NotFound, "queued now"},
		{"not found, with keys and no look-up", keyedOnly, unknown, "", NotFound, "queued now"},
		{"not found after a second send, with keys", keyed, with(unknown, func(e *Effect) { e.Attempts = 2 }), kindLookup, NotFound, "queued later"},
		{"not found after the last send", keyed, lastSend, kindLookup, NotFound, "unknown later"},
		{"not found at the last look after the last send", keyed, lastOfAll, kindLookup, NotFound, "unknown later for a person"},
		{"keys without look-up after the last send", keyedOnly, lastSend, "", NotFound, "unknown for a person"},
		{"not found by look-up", lookedUp, unknown, kindLookup, NotFound, "unknown later"},
		{"not found by the last look-up", lookedUp, lastAsk, kindLookup, NotFound, "unknown later for a person"},
		{"not found after a person was told", lookedUp, told, kindLookup, NotFound, "unknown later"},
		{"a target that can't be asked", unable, unknown, "", NotFound, "unknown for a person"},
		{"not found, and a cancel came since: to be closed", keyedShut, with(canceling, func(e *Effect) { e.Asks = 2 }), kindLookup, NotFound, "unknown later for a person"},
		{"not found by a close, which is no answer of one", floored, unknown, kindClose, NotFound, "unknown later"},

		{"closed by a floor", floored, unknown, kindClose, Closed, "queued now"},
		{"closed by a floor after a second send", floored, with(unknown, func(e *Effect) { e.Attempts = 2 }), kindClose, Closed, "queued later"},
		{"closed by a floor after the last send", floored, lastSend, kindClose, Closed, "failed by closing"},
		{"closed by a floor to cancel", floored, canceling, kindClose, Closed, "canceled by closing"},
		{"closed for good", shutting, unknown, kindClose, Closed, "failed by closing"},
		{"closed for good to cancel", shutting, canceling, kindClose, Closed, "canceled by closing"},
		{"closed by a look-up, which can't", keyedShut, unknown, kindLookup, Closed, "unknown later"},

		{"no answer", lookedUp, unknown, kindLookup, Ambiguous, "unknown later"},
		{"no answer for long", lookedUp, lastAsk, kindLookup, Ambiguous, "unknown later for a person"},
		{"no answer for longer", lookedUp, told, kindLookup, Ambiguous, "unknown later"},

		{"accepted, and still going on", lookedUp, going, kindLookup, Accepted, "running later"},
		{"accepted, and not found", keyed, going, kindLookup, NotFound, "running later"},
		{"accepted, and not found for long", keyed, goingLast, kindLookup, NotFound, "unknown for a person"},
		{"accepted, and closed to cancel", floored, with(going, func(e *Effect) { e.CancelAskedAt = &now }), kindClose, Closed, "canceled by closing"},
	} {
		t.Run(c.name+": "+c.want, func(t *testing.T) {
			target := Target{Ability: c.of, Timeout: time.Second, Lease: 10 * time.Second, MaxAttempts: 3, MaxAsks: 2, AskEvery: time.Second}
			if got := describeStep(target.afterAsk(c.e, c.kind, c.of.believe(Evidence{Finding: c.finding}), now), now); got != c.want {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestAsking(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, set func(*testing.T, Ability) *stage) {
		t.Run("raises the fence, then closes, then hears", func(t *testing.T) {
			s := set(t, floored)
			s.desk.onSend = always(Ambiguous)
			e := s.send(s.accept("k"))
			s.desk.onClose = func(given Effect) Evidence {
				if e := s.now(e); e.Fence != 2 || given.Fence != 2 || e.State != idempotency.Unknown {
					t.Errorf("the effect while its target is asked: %+v", e)
				}
				return Evidence{Finding: Closed}
			}
			s.clock.advance(time.Minute)
			e = s.ask(e)
			if e.State != idempotency.Queued || e.inDoubt() || e.NextAt == nil || s.desk.called(kindLookup) != 0 {
				t.Errorf("%d look-ups, %+v", s.desk.called(kindLookup), e)
			}
		})
		t.Run("leaves a live lease alone, and takes what is running past it", func(t *testing.T) {
			s := set(t, keyed)
			e := s.take(s.accept("k"))
			s.clock.advance(s.target.Lease - tick - time.Microsecond)
			if s.ask(e).Fence != 1 || s.desk.called(kindLookup) != 0 {
				t.Fatal("asked during the lease")
			}
			s.clock.advance(time.Microsecond)
			if e = s.ask(e); e.Fence != 2 || e.State != idempotency.Queued || !e.inDoubt() || s.desk.called(kindLookup) != 1 {
				t.Errorf("queued again after %d look-ups: %+v", s.desk.called(kindLookup), e)
			}
			want := []string{"sent queued>running", "unknown running>unknown", "reconciled unknown>queued", "queued unknown>queued"}
			if diff := cmp.Diff(want, s.events(e)); diff != "" {
				t.Error(diff)
			}
		})
		t.Run("finds what was sent by a worker that died", func(t *testing.T) {
			s := set(t, lookedUp)
			e := s.take(s.accept("k"))
			s.desk.onLookup = func(Effect) Evidence { return Evidence{Finding: Confirmed, Reference: "D-7"} }
			s.clock.advance(time.Minute)
			e = s.ask(e)
			op := s.operation(e)
			if op.State != idempotency.Succeeded || e.Reference != "D-7" || string(op.ResponseBody) != "succeeded  D-7" {
				t.Errorf("%s %q %+v", op.State, op.ResponseBody, e)
			}
		})
		t.Run("makes no attempt where there is nobody to ask", func(t *testing.T) {
			s := set(t, unable)
			e := s.take(s.accept("k"))
			s.clock.advance(time.Minute)
			e = s.ask(e)
			var attempts int64
			s.ok(s.db.Read(t.Context()).Table("attempts").Where("kind <> 'send' AND account_id = ?", s.account).Count(&attempts).Error)
			if e.State != idempotency.Unknown || e.ReviewID == "" || attempts != 0 || e.Asks != 0 {
				t.Errorf("%d attempts, %+v", attempts, e)
			}
		})
		t.Run("tells a person nothing of looks that nobody made, however often it is wanted", func(t *testing.T) {
			s := set(t, unable)
			e := s.take(s.accept("k"))
			s.clock.advance(time.Minute)
			for range 3 {
				e = s.ask(e)
				s.ok(s.inTx(func(tx database.Tx) error { _, err := s.box.Reconcile(tx, s.account, e.OperationID); return err }))
				s.clock.advance(time.Minute)
			}
			want := "ambiguous after 1 send: whoever was sending has not said what came of it, their process may have died; this target can't be asked"
			if all := s.reviews(review.Unknown); len(all) != 1 || len(all[0].Evidence) != 1 || all[0].Evidence[0].Says != want || len(s.desk.calls) > 0 {
				t.Errorf("%v %+v", s.desk.calls, all)
			}
		})
		t.Run("tells a person once of a target that gives no answer, goes on, and takes it back", func(t *testing.T) {
			s := set(t, lookedUp)
			s.desk.onSend, s.desk.onLookup = always(Ambiguous), always(Ambiguous)
			e := s.send(s.accept("k"))
			for range 10 {
				s.clock.advance(time.Minute)
				e = s.ask(e)
			}
			questions := s.reviews(review.Unknown)
			if len(questions) != 1 || len(questions[0].Evidence) != 1 || e.ReviewID != questions[0].ID || s.desk.called(kindLookup) != 10 || e.NextAt == nil {
				t.Fatalf("%+v after %d look-ups: %+v", questions, s.desk.called(kindLookup), e)
			}
			s.desk.onLookup = func(Effect) Evidence { return Evidence{Finding: Confirmed, Reference: "D-1"} }
			s.clock.advance(time.Minute)
			e = s.ask(e)
			if questions := s.reviews(review.Unknown); e.State != idempotency.Succeeded || questions[0].State != review.StateResolved {
				t.Errorf("%+v, %+v", questions, e)
			}
		})
		t.Run("goes on slowly while a person is asked, and takes it back", func(t *testing.T) {
			s := set(t, lookedUp)
			s.desk.onSend = always(Ambiguous)
			e := s.send(s.accept("k"))
			for range s.target.MaxAsks + 3 {
				s.clock.advance(time.Hour)
				e = s.ask(e)
			}
			all := s.reviews(review.Unknown)
			if len(all) != 1 || len(all[0].Evidence) != 1 || e.ReviewID != all[0].ID || !e.NextAt.Equal(s.db.Now().Add(whileAPersonIsAsked)) {
				t.Fatalf("%+v, %+v", all, e)
			}
			s.desk.onLookup = always(Confirmed)
			s.clock.advance(whileAPersonIsAsked)
			if e = s.ask(e); e.State != idempotency.Succeeded || s.reviews(review.Unknown)[0].State != review.StateResolved || s.desk.called(kindSend) != 1 {
				t.Errorf("%+v, %+v", s.reviews(review.Unknown), e)
			}
		})
		for _, finding := range []Finding{NotFound, Ambiguous} {
			t.Run(fmt.Sprintf("is not cut short by who keeps asking for it, while it is %s", finding), func(t *testing.T) {
				s := set(t, lookedUp)
				s.desk.onSend, s.desk.onLookup = always(Ambiguous), always(finding)
				e := s.send(s.accept("k"))
				for range 20 {
					s.ok(s.inTx(func(tx database.Tx) error { _, err := s.box.Reconcile(tx, s.account, e.OperationID); return err }))
					e = s.ask(e)
				}
				if e.ReviewID != "" || e.NextAt == nil || s.desk.called(kindLookup) != 20 {
					t.Errorf("after %d look-ups: %+v", s.desk.called(kindLookup), e)
				}
			})
		}
		t.Run("closes soon what is to be canceled, however long it has been looked up", func(t *testing.T) {
			s := set(t, keyedShut)
			s.desk.onSend, s.desk.onLookup = always(Ambiguous), always(Ambiguous)
			e := s.send(s.accept("k"))
			for range s.target.MaxAsks + 1 {
				s.clock.advance(time.Minute)
				e = s.ask(e)
			}
			s.desk.onLookup = func(Effect) Evidence { // a cancel comes while it is looked up
				s.ok(s.inTx(func(tx database.Tx) error { _, err := s.box.Cancel(tx, s.account, e.OperationID); return err }))
				return Evidence{Finding: NotFound}
			}
			s.clock.advance(time.Minute)
			if e = s.ask(e); e.NextAt.Sub(s.db.Now()) > longestWait {
				t.Errorf("%+v", e)
			}
		})
		t.Run("leaves the target the peace that it has asked for, whoever wants to know", func(t *testing.T) {
			busy := Evidence{Finding: Ambiguous, Says: "answered 503", RetryAfter: 10 * time.Minute}
			s := set(t, lookedUp)
			s.desk.onSend = func(Effect) Evidence { return busy }
			e := s.send(s.accept("k"))
			s.clock.advance(s.target.AskEvery)
			s.ok(s.inTx(func(tx database.Tx) error { _, err := s.box.Reconcile(tx, s.account, e.OperationID); return err }))
			if e = s.ask(e); s.desk.called(kindLookup) != 0 {
				t.Fatalf("%+v", e)
			}
			s.clock.advance(busy.RetryAfter)
			s.desk.onLookup = func(Effect) Evidence { return busy }
			e = s.ask(e)
			s.ok(s.inTx(func(tx database.Tx) error { _, err := s.box.Reconcile(tx, s.account, e.OperationID); return err }))
			s.clock.advance(busy.RetryAfter - time.Minute)
			if e = s.ask(e); s.desk.called(kindLookup) != 1 {
				t.Errorf("%+v", e)
			}
			s.clock.advance(time.Minute)
			if s.ask(e); s.desk.called(kindLookup) != 2 {
				t.Errorf("%+v", s.now(e))
			}
		})
		t.Run("waits longer and longer, as long as it learns nothing", func(t *testing.T) {
			s := set(t, lookedUp)
			s.desk.onSend, s.desk.onLookup = always(Ambiguous), always(Ambiguous)
			e := s.send(s.accept("k"))
			for range 9 {
				s.clock.advance(time.Minute)
				e = s.ask(e)
			}
			if wait := e.NextAt.Sub(s.db.Now()); wait < longestWait/2 {
				t.Errorf("%s after %d looks", wait, e.Asks)
			}
		})
	})
}

func TestWhatTheTargetAccepted(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, set func(*testing.T, Ability) *stage) {
		accept := func(t *testing.T, ability Ability) (*stage, Effect) {
			s := set(t, ability)
			s.desk.onSend = func(Effect) Evidence { return Evidence{Finding: Accepted, Reference: "R-1"} }
			e := s.send(s.accept("k"))
			if e.State != idempotency.Running || e.AcceptedAt == nil || e.LeasedBy != "" || e.Reference != "R-1" || !e.NextAt.Equal(s.db.Now().Add(s.target.AskEvery)) {
				t.Fatalf("accepted: %+v", e)
			}
			return s, e
		}
		t.Run("is running until asked, and while it is asked", func(t *testing.T) {
			s, e := accept(t, lookedUp)
			s.desk.onLookup = func(Effect) Evidence {
				if op := s.operation(e); op.State != idempotency.Running {
					t.Errorf("%s while it is asked", op.State)
				}
				return Evidence{Finding: Accepted}
			}
			for i := range 10 { // a long rollout
				s.clock.advance(s.target.AskEvery)
				e = s.ask(e)
				if e.State != idempotency.Running || e.Reference != "R-1" || !e.NextAt.Equal(s.db.Now().Add(s.target.AskEvery)) || s.desk.called(kindLookup) != i+1 {
					t.Fatalf("%+v", e)
				}
			}
			s.desk.onLookup = always(Confirmed)
			s.clock.advance(s.target.AskEvery)
			e = s.ask(e)
			if e.State != idempotency.Succeeded || e.Reference != "R-1" || string(s.operation(e).ResponseBody) != "succeeded  R-1" {
				t.Errorf("%+v", e)
			}
			want := []string{"sent queued>running", "accepted running>running", "reconciled running>succeeded", "completed running>succeeded"}
			if diff := cmp.Diff(want, s.events(e)); diff != "" {
				t.Error(diff)
			}
		})
		t.Run("and shows no more ends with a person, not with a second send", func(t *testing.T) {
			s, e := accept(t, keyed)
			for range s.target.MaxAsks {
				s.clock.advance(time.Minute)
				e = s.ask(e)
			}
			if e.State != idempotency.Unknown || e.ReviewID == "" || e.NextAt != nil || s.desk.called(kindSend) != 1 {
				t.Errorf("%d sends, %+v", s.desk.called(kindSend), e)
			}
		})
		t.Run("can be canceled where the target can close", func(t *testing.T) {
			s, e := accept(t, floored)
			s.ok(s.inTx(func(tx database.Tx) error { _, err := s.box.Cancel(tx, s.account, e.OperationID); return err }))
			e = s.ask(e)
			if e.State != idempotency.Canceled || s.desk.called(kindClose) != 1 {
				t.Errorf("%d closes, %+v", s.desk.called(kindClose), e)
			}
		})
		t.Run("under another name than before is a second effect: a person is asked, the first name stays", func(t *testing.T) {
			s, e := accept(t, lookedUp)
			s.desk.onLookup = func(Effect) Evidence { return Evidence{Finding: Confirmed, Reference: "R-2"} }
			s.clock.advance(time.Minute)
			e = s.ask(e)
			questions := s.reviews(review.Contradiction)
			if e.State != idempotency.Succeeded || e.Reference != "R-1" || len(questions) != 1 {
				t.Errorf("%+v, %+v", questions, e)
			}
		})
	})
}

func TestHowToAsk(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	fresh := Effect{State: idempotency.Unknown, Attempts: 1, FirstSentAt: &now, Doubt: new(int64)}
	last, canceling := fresh, fresh
	last.Attempts, canceling.CancelAskedAt = 3, &now
	goingOn := fresh
	goingOn.State, goingOn.AcceptedAt = idempotency.Running, &now
	goingOnUnwanted := goingOn
	goingOnUnwanted.CancelAskedAt = &now
	for _, c := range []struct {
		name string
		of   Ability
		e    Effect
		want string
	}{
		{"a target with keys is looked up", keyed, fresh, kindLookup},
		{"one with keys and no look-up is not asked", keyedOnly, fresh, ""},
		{"one that can close is closed", floored, fresh, kindClose},
		{"one with both is looked up while a send may follow", keyedShut, fresh, kindLookup},
		{"one with both is closed when none may", keyedShut, last, kindClose},
		{"one with keys and a floor is closed before anything is sent again", keyedHigh, fresh, kindClose},
		{"and looked up while what it has accepted goes on", keyedHigh, goingOn, kindLookup},
		{"or closed, to cancel", keyedHigh, goingOnUnwanted, kindClose},
		{"one with both is closed to cancel", keyedShut, canceling, kindClose},
		{"one that can be looked up is", lookedUp, last, kindLookup},
		{"one that can do nothing is not asked", unable, fresh, ""},
	} {
		t.Run(fmt.Sprintf("%s: %q", c.name, c.want), func(t *testing.T) {
			target := Target{Ability: c.of, Timeout: time.Second, Lease: 10 * time.Second, MaxAttempts: 3}
			if got := target.howToAsk(c.e, now); got != c.want {
				t.Errorf("got %q", got)
			}
		})
	}
}
