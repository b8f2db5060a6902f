package outbox

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/einmal/einmal/pkg/catalogue"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/review"
)

// day is the deadline of what a desk is asked for.
const day = 24 * time.Hour

// look lets the watcher look once.
func (s *stage) look() {
	s.t.Helper()
	s.clock.advance(tick)
	s.ok(s.box.passDeadlines(context.Background(), s.target))
}

// asked is the one review about the deadline, or none.
func (s *stage) asked() review.Review {
	s.t.Helper()
	all := s.reviews(review.Deadline)
	if len(all) != 1 {
		s.t.Fatalf("%d reviews of the deadline, want one: %+v", len(all), all)
	}
	return all[0]
}

func TestDeadline(t *testing.T) {
	t.Parallel()
	abilities := map[string]Ability{"key": keyed, "key and close": keyedShut, "floor": floored, "close": shutting, "look-up": lookedUp, "none": unable}
	each(t, func(t *testing.T, set func(*testing.T, Ability) *stage) {
		for name, ability := range abilities {
			t.Run("is the end of what was never sent, "+name, func(t *testing.T) {
				s := set(t, ability)
				e := s.accept("k")
				s.clock.advance(day - time.Second) // a call of a second would not end in time
				if e = s.send(e); e.State != idempotency.Failed || s.desk.called(kindSend) != 0 {
					t.Fatalf("%+v", e)
				}
				if op := s.operation(e); op.State != idempotency.Failed || string(op.ResponseBody) != "failed deadline " {
					t.Errorf("%s %s", op.State, op.ResponseBody)
				}
				s.look()
				if all := s.reviews(review.Deadline); len(all) != 0 {
					t.Errorf("asked about what is certain: %+v", all)
				}
			})
			t.Run("opens one review of what may have happened, and nothing is sent any more, "+name, func(t *testing.T) {
				s := set(t, ability)
				s.desk.onClose, s.desk.onLookup = always(Ambiguous), always(Ambiguous)
				e := s.reach(idempotency.Unknown, true)
				s.clock.advance(day)
				s.look()
				s.look()
				r := s.asked()
				if r.State != review.StateOpen || r.Owner != "operator" || !r.DueAt.Equal(r.OpenedAt.Add(8*time.Hour)) {
					t.Errorf("%+v", r)
				}
				now := s.now(e)
				if now.State != idempotency.Unknown || now.Fence != e.Fence || now.OverdueAt == nil || now.ReviewID == "" || (now.NextAt == nil) != (e.NextAt == nil) {
					t.Errorf("%+v, then %+v", e, now)
				}
				s.desk.onClose, s.desk.onLookup = always(Closed), always(NotFound)
				for range 20 {
					if now.State.Final() || now.NextAt == nil {
						break
					}
					s.clock.advance(10 * time.Minute)
					if now.State == idempotency.Queued {
						now = s.send(now)
					} else {
						now = s.ask(now)
					}
				}
				if s.desk.called(kindSend) != 0 { // none more: that of reach was no call
					t.Errorf("%d sends", s.desk.called(kindSend))
				}
				switch {
				case ability.Close: // certain in the end, and then the question is answered
					if op := s.operation(e); op.State != idempotency.Failed || string(op.ResponseBody) != "failed deadline " || s.asked().State != review.StateResolved {
						t.Errorf("%s %s, %+v", op.State, op.ResponseBody, s.asked())
					}
				case now.State != idempotency.Unknown || s.asked().State != review.StateOpen:
					t.Errorf("%+v", now)
				}
			})
		}

		t.Run("is noticed of what waits for its turn, or for a pause to end", func(t *testing.T) {
			s := set(t, keyed)
			waits := s.accept("waits")
			s.ok(s.inTx(func(tx database.Tx) error {
				return tx.Exec("UPDATE effects SET next_at = NULL WHERE account_id = ? AND id = ?", waits.AccountID, waits.ID).Error
			}))
			s.desk.onSend = func(Effect) Evidence { return Evidence{Finding: NotSent} }
			paused := s.accept("paused")
			s.clock.advance(day - time.Minute)
			paused = s.sent(s.take(paused), Evidence{Finding: NotSent, RetryAfter: time.Hour})
			s.clock.advance(time.Minute)
			s.look()
			for _, e := range []Effect{waits, paused} {
				if op := s.operation(e); op.State != idempotency.Failed || string(op.ResponseBody) != "failed deadline " {
					t.Errorf("%s %s", op.State, op.ResponseBody)
				}
			}
		})
		t.Run("ends nothing that waits for an approval", func(t *testing.T) {
			s := set(t, keyed)
			e := s.reach(idempotency.AwaitingApproval, false)
			s.clock.advance(2 * day)
			s.look()
			if e = s.now(e); e.State != idempotency.AwaitingApproval || e.OverdueAt != nil {
				t.Errorf("%+v", e)
			}
			// Nor is it sent if the yes comes after it.
			s.ok(s.inTx(func(tx database.Tx) error {
				return tx.Exec("UPDATE effects SET state = 'queued', next_at = ? WHERE account_id = ? AND id = ?", tx.Now, e.AccountID, e.ID).Error
			}))
			if e = s.send(e); e.State != idempotency.Canceled || s.desk.called(kindSend) != 0 {
				t.Errorf("%+v", e)
			}
		})
		t.Run("that passes while a send is under way asks, and the answer settles and answers", func(t *testing.T) {
			s := set(t, lookedUp)
			e := s.accept("k")
			s.clock.advance(day - 5*time.Second)
			taken := s.take(e)
			s.clock.advance(6 * time.Second)
			s.look()
			if r := s.asked(); r.State != review.StateOpen {
				t.Errorf("%+v", r)
			}
			if e = s.sent(taken, Evidence{Finding: Confirmed, Reference: "D-1"}); e.State != idempotency.Succeeded {
				t.Errorf("%+v", e)
			}
			if r := s.asked(); r.State != review.StateResolved || r.ResolvedBy != review.LaterEvidence {
				t.Errorf("%+v", r)
			}
		})
		t.Run("bounds until when a send may begin", func(t *testing.T) {
			s := set(t, keyed)
			e := s.accept("k")
			s.clock.advance(day - 5*time.Second)
			taken := s.take(e)
			if !taken.SendBy.Equal(e.Deadline.Add(-s.target.Timeout)) {
				t.Errorf("send by %s, deadline %s", taken.SendBy, taken.Deadline)
			}
			s.sent(taken, Evidence{Finding: Confirmed})
		})
		t.Run("of what goes on at the target asks, and lets it go on", func(t *testing.T) {
			s := set(t, keyedHigh)
			e := s.sent(s.take(s.accept("k")), Evidence{Finding: Accepted, Reference: "R-1"})
			s.clock.advance(day)
			s.look()
			r, now := s.asked(), s.now(e)
			if now.State != idempotency.Running || now.NextAt == nil || !strings.Contains(r.Evidence[0].Says, "goes on") {
				t.Errorf("%+v, %+v", now, r)
			}
			s.desk.onClose, s.desk.onLookup = always(Accepted), always(Accepted)
			if now = s.ask(now); now.State != idempotency.Running {
				t.Errorf("%+v", now)
			}
			s.desk.onClose, s.desk.onLookup = always(Confirmed), always(Confirmed)
			s.clock.advance(time.Minute)
			if now = s.ask(now); now.State != idempotency.Succeeded || s.asked().State != review.StateResolved {
				t.Errorf("%+v", now)
			}
		})
		t.Run("of what was queued again makes it be asked about", func(t *testing.T) {
			s := set(t, keyed)
			e := s.reach(idempotency.Queued, true)
			s.clock.advance(day)
			s.look()
			if e = s.now(e); e.State != idempotency.Unknown || e.NextAt == nil || !e.inDoubt() || s.asked().State != review.StateOpen {
				t.Errorf("%+v", e)
			}
		})
		t.Run("leaves the question to whoever was asked before", func(t *testing.T) {
			s := set(t, unable)
			e := s.reach(idempotency.Unknown, true)
			s.clock.advance(day)
			s.look()
			if now := s.now(e); now.ReviewID != e.ReviewID || e.ReviewID != s.reviews(review.Unknown)[0].ID || s.asked().State != review.StateOpen {
				t.Errorf("%+v", now)
			}
			s.ok(s.decide(e, idempotency.Failed, ""))
			if r := s.asked(); r.State != review.StateResolved {
				t.Errorf("%+v", r)
			}
		})
		t.Run("that a person has answered for is not asked about again; evidence against them is, and changes nothing", func(t *testing.T) {
			s := set(t, lookedUp)
			taken := s.take(s.accept("k"))
			s.clock.advance(day)
			e := s.ask(taken) // its sender says nothing
			s.look()
			r := s.asked()
			s.ok(s.inTx(func(tx database.Tx) error {
				resolved, err := review.Resolve(tx, e.AccountID, r.ID, "olga", idempotency.Failed, review.Evidence{Source: "olga", At: tx.Now, Says: "the desk has none"})
				if err != nil {
					return err
				}
				return s.box.Resolve(tx, resolved, idempotency.Failed, "")
			}))
			failed := s.operation(e)
			if now := s.sent(taken, Evidence{Finding: Confirmed, Reference: "D-1"}); now.State != idempotency.Failed {
				t.Errorf("%+v", now)
			}
			s.look()
			s.asked()
			after := s.operation(e)
			if after.State != idempotency.Failed || !bytes.Equal(after.ResponseBody, failed.ResponseBody) {
				t.Errorf("%s %s", after.State, after.ResponseBody)
			}
			against := s.reviews(review.Contradiction)
			if len(against) != 1 || len(against[0].Evidence) != 2 {
				t.Fatalf("%+v", against)
			}
			for i, part := range []string{"said in " + r.ID + " that it has failed: the desk has none", "D-1"} {
				if !strings.Contains(against[0].Evidence[i].Says, part) {
					t.Errorf("%q does not say %q", against[0].Evidence[i].Says, part)
				}
			}
		})
		t.Run("is noticed by one of any number of replicas that look at once", func(t *testing.T) {
			s := set(t, lookedUp)
			var all []Effect
			for i := range 8 {
				e := s.accept(fmt.Sprint(i))
				if i%2 == 0 {
					e = s.sent(s.take(e), Evidence{Finding: Ambiguous})
				}
				all = append(all, e)
			}
			s.clock.advance(day)
			var replicas sync.WaitGroup
			for range 4 {
				replicas.Go(func() {
					if err := s.box.passDeadlines(context.Background(), s.target); err != nil {
						t.Error(err)
					}
				})
			}
			replicas.Wait()
			s.look()
			if n := len(s.reviews(review.Deadline)); n != 4 {
				t.Errorf("%d reviews, want 4", n)
			}
			for i, e := range all {
				want := map[bool]idempotency.State{true: idempotency.Unknown, false: idempotency.Failed}[i%2 == 0]
				if op := s.operation(e); op.State != want {
					t.Errorf("%d is %s, want %s", i, op.State, want)
				}
			}
		})
		t.Run("of one that can't be settled keeps no other from its end", func(t *testing.T) {
			s := set(t, lookedUp)
			settle := s.target.Settle
			bad := s.accept("bad")
			good := s.accept("good")
			s.target.Settle = func(tx database.Tx, e Effect, end End) (idempotency.Answer, error) {
				if e.ID == bad.ID {
					return idempotency.Answer{}, fmt.Errorf("no domain row")
				}
				return settle(tx, e, end)
			}
			s.build()
			s.clock.advance(day)
			s.look()
			if b, g := s.now(bad), s.now(good); b.State != idempotency.Queued || g.State != idempotency.Failed {
				t.Errorf("%s, %s", b.State, g.State)
			}
			s.target.Settle = settle
			s.build()
			s.look()
			if b := s.now(bad); b.State != idempotency.Failed {
				t.Errorf("%+v", b)
			}
		})
		t.Run("can be set sooner than the catalogue has it, never later", func(t *testing.T) {
			s := set(t, keyed)
			for longest, want := range map[time.Duration]time.Duration{time.Hour: time.Hour, 48 * time.Hour: day, 0: day} {
				s.box.longest = longest
				e := s.acceptOf(s.account, longest.String(), catalogue.TicketMirror)
				if got := e.Deadline.Sub(e.CreatedAt); got != want {
					t.Errorf("at most %s: %s, want %s", longest, got, want)
				}
			}
		})
	})
}

// After an outage everything is late at once. Work is bounded: pages of a hundred, and a transaction for each.
func TestManyDeadlinesAtOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, set func(*testing.T, Ability) *stage) {
		s := set(t, lookedUp)
		const many = 3*atOnce + 7
		doubtful := s.sent(s.take(s.accept("doubtful")), Evidence{Finding: Ambiguous})
		queued := s.accept("queued")
		s.ok(s.inTx(func(tx database.Tx) error {
			for i := range many { // copies of both, operation and effect
				for _, of := range []Effect{doubtful, queued} {
					n := fmt.Sprintf("%s-%d", of.ID, i)
					if err := tx.Exec(`INSERT INTO operations SELECT account_id, ?, ?, type, state, fingerprint, route, principal, agent_run, request_id, resource_type,
						resource_id, resource_href, response_status, response_location, response_body, created_at, updated_at, completed_at, response_expired_at
						FROM operations WHERE account_id = ? AND id = ?`, n, "op-"+n, of.AccountID, of.OperationID).Error; err != nil {
						return err
					}
					e := of
					e.ID, e.OperationID, e.IdempotencyKey, e.EffectKey = n, "op-"+n, idempotency.Key(n), n
					if err := tx.Create(&e).Error; err != nil {
						return err
					}
					if err := s.record(tx, idempotency.Event{Type: idempotency.Attempted, At: tx.Now, Account: e.AccountID, OperationID: e.OperationID}); err != nil {
						return err
					}
				}
			}
			return nil
		}))
		s.clock.advance(day)
		s.look()
		count := func(where string) (n int64) {
			s.ok(s.db.Read(t.Context()).Table("effects").Where("account_id = ? AND "+where, s.account).Count(&n).Error)
			return n
		}
		if failed, asked := count("state = 'failed'"), count("state = 'unknown' AND overdue_at IS NOT NULL AND review_id <> ''"); failed != many+1 || asked != many+1 {
			t.Errorf("%d failed and %d are asked about, want %d of each", failed, asked, many+1)
		}
	})
}

// journal is what was logged.
type journal struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *journal) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *journal) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

func TestEscalation(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, set func(*testing.T, Ability) *stage) {
		s := set(t, unable)
		log := &journal{}
		s.box.log = slog.New(slog.NewTextHandler(log, nil))
		e := s.reach(idempotency.Unknown, true)
		id := s.reviews(review.Unknown)[0].ID
		told := func() int { return log.count("review is overdue\" review=" + id) }
		s.ok(s.box.escalate(t.Context()))
		if told() != 0 {
			t.Error("told before it was due")
		}
		s.clock.advance(8 * time.Hour)
		var replicas sync.WaitGroup
		for range 4 {
			replicas.Go(func() {
				if err := s.box.escalate(context.Background()); err != nil {
					t.Error(err)
				}
			})
		}
		replicas.Wait()
		s.build() // a restart
		s.box.log = slog.New(slog.NewTextHandler(log, nil))
		s.ok(s.box.escalate(t.Context()))
		if told() != 1 || log.count("operation_id="+e.OperationID) != 1 || log.count(`ask="an operator of the account"`) < 1 {
			t.Errorf("told %d times: %s", told(), log.text.String())
		}
		if r := s.reviews(review.Unknown)[0]; r.EscalatedAt == nil || r.State != review.StateOpen {
			t.Errorf("%+v", r)
		}
	})
}
