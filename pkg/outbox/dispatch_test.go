package outbox

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/einmal/einmal/pkg/catalogue"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/idempotency"
)

// patience is how long a test waits for what must come: soon, on a machine that does nothing else.
const patience = 2 * time.Minute

// run lets the outbox work, by a clock that runs, until the test ends or stop is called.
func (s *stage) run() (stop func()) {
	s.clock.run()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.box.Run(ctx)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	s.t.Cleanup(func() {
		s.release() // what hangs, since stop waits for it
		stop()
	})
	return stop
}

// eventually waits until ok.
func (s *stage) eventually(what string, ok func() bool) {
	s.t.Helper()
	for end := time.Now().Add(patience); !ok(); <-time.After(2 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("not within %s: %s", patience, what)
		}
	}
}

func (s *stage) becomes(e Effect, state idempotency.State) Effect {
	s.t.Helper()
	s.eventually(fmt.Sprintf("%s becomes %s", e.IdempotencyKey, state), func() bool { return s.now(e).State == state })
	return s.now(e)
}

// hang lets sends hang until release. It returns the effects that do.
func (s *stage) hang() <-chan Effect {
	begun, free := make(chan Effect, 1000), make(chan struct{})
	s.desk.onSend = func(e Effect) Evidence {
		begun <- e
		<-free
		return Evidence{Finding: Confirmed, Reference: "D-1"}
	}
	s.release = sync.OnceFunc(func() { close(free) })
	return begun
}

// receive waits for the next.
func receive[T any](t *testing.T, from <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatalf("not within %s: %s", patience, what)
		panic("unreachable")
	}
}

// enqueue accepts many operations at once.
func (s *stage) enqueue(account string, keys ...string) {
	s.t.Helper()
	s.ok(s.inTx(func(tx database.Tx) error {
		for _, key := range keys {
			op, claimed, err := s.exec.Claim(tx, request(account, key, catalogue.TicketMirror), idempotency.Answer{State: idempotency.Queued})
			if err != nil || !claimed {
				return fmt.Errorf("claim %s: %v, %w", key, claimed, err)
			}
			if err := s.box.Enqueue(tx, op, s.target.Name, "mirror", []byte(key)); err != nil {
				return err
			}
		}
		return nil
	}))
}

func keys(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("k%04d", i)
	}
	return all
}

func TestRun(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, set func(*testing.T, Ability) *stage) {
		t.Run("begins at once with an effect that it is nudged about", func(t *testing.T) {
			s := set(t, keyed)
			s.run() // it looks for due effects once a minute
			s.becomes(func() Effect { e := s.accept("before"); s.box.Nudge(); return e }(), idempotency.Succeeded)
			began, e := time.Now(), s.accept("k")
			settled := s.box.Settled(e.OperationID)
			s.box.Nudge()
			receive(t, settled, "word to those who wait for an operation")
			s.becomes(e, idempotency.Succeeded)
			if took := time.Since(began); took > s.box.pollEvery/2 {
				t.Errorf("%s", took)
			}
		})
		t.Run("wakes who waits for an operation that ends, and leaves those alone who wait for another", func(t *testing.T) {
			s := set(t, keyed)
			s.run()
			e, another := s.accept("k"), ""
			for i := 0; another == "" || s.box.changed.of(another) == s.box.changed.of(e.OperationID); i++ {
				another = fmt.Sprint("op_", i)
			}
			settled, undisturbed := s.box.Settled(e.OperationID), s.box.Settled(another)
			s.box.Nudge()
			receive(t, settled, "word to those who wait for an operation")
			select {
			case <-undisturbed:
				t.Error("woken for nothing")
			default:
			}
		})
		t.Run("finds without a nudge what another process has accepted", func(t *testing.T) {
			s := set(t, keyed)
			s.box.pollEvery = 20 * time.Millisecond
			s.run()
			s.becomes(s.accept("k"), idempotency.Succeeded)
		})
		t.Run("comes back when an effect is due again, without waiting for the next look", func(t *testing.T) {
			s := set(t, keyed)
			s.target.AskEvery = 20 * time.Millisecond
			s.build()
			answers := make(chan Finding, 3)
			answers <- NotSent
			answers <- Ambiguous
			answers <- Confirmed
			s.desk.onSend = func(Effect) Evidence { return Evidence{Finding: <-answers, Reference: "D-1"} }
			s.run()
			e := s.accept("k")
			s.box.Nudge()
			s.becomes(e, idempotency.Succeeded)
			if want := []string{kindSend, kindSend, kindLookup, kindSend}; !slices.Equal(s.desk.calls, want) {
				t.Errorf("called %q, want %q", s.desk.calls, want)
			}
		})
		t.Run("wakes when an effect is due that another process has left, without waiting for the next look", func(t *testing.T) {
			for state, open := range map[idempotency.State]func(s *stage) Effect{
				idempotency.Queued:  func(s *stage) Effect { return s.accept("k") },
				idempotency.Running: func(s *stage) Effect { return s.take(s.accept("k")) }, // by a worker that is dead now
				idempotency.Unknown: func(s *stage) Effect { return s.reach(idempotency.Unknown, true) },
			} {
				s := set(t, keyed)
				s.desk.onLookup = always(Confirmed)
				e := open(s)
				soon := s.db.Now().Add(100 * time.Millisecond)
				due := map[string]any{"next_at": soon}
				if e.LeaseUntil != nil {
					due["lease_until"] = soon
				}
				s.ok(s.inTx(func(tx database.Tx) error { return tx.Table("effects").Where("id = ?", e.ID).UpdateColumns(due).Error }))
				began := time.Now()
				s.run() // it looks for due effects once a minute
				s.becomes(e, idempotency.Succeeded)
				if took := time.Since(began); took > s.box.pollEvery/2 {
					t.Errorf("%s: %s", state, took)
				}
			}
		})
		t.Run("looks while a storm of sends hangs in every place", func(t *testing.T) {
			s := set(t, lookedUp)
			unknown := s.reach(idempotency.Unknown, true)
			s.clock.advance(time.Minute)
			s.desk.onLookup = always(Confirmed)
			hanging := s.hang()
			s.enqueue(s.account, keys(100)...)
			s.ok(s.inTx(func(tx database.Tx) error { // the look becomes due after the storm has taken its places
				return tx.Exec("UPDATE effects SET next_at = ? WHERE id = ?", tx.Now.Add(time.Hour), unknown.ID).Error
			}))
			s.run()
			for range s.target.Sends.Places {
				receive(t, hanging, "a send that hangs")
			}
			s.ok(s.inTx(func(tx database.Tx) error { _, err := askNow(tx, unknown); return err }))
			s.box.Nudge()
			s.becomes(unknown, idempotency.Succeeded)
			if n := s.desk.called(kindSend); n != s.target.Sends.Places {
				t.Errorf("%d sends at once, want %d", n, s.target.Sends.Places)
			}
			s.release()
			s.eventually("the storm is over", func() bool { return s.desk.called(kindSend) == 100 })
		})
		t.Run("sends what has priority while a storm of others hangs in every place", func(t *testing.T) {
			s := set(t, lookedUp)
			hanging := s.hang()
			s.enqueue(s.account, keys(20)...)
			s.run()
			for range s.target.Sends.Places {
				receive(t, hanging, "a send that hangs")
			}
			first := s.acceptOf(s.account, "first", catalogue.DeploymentCancel)
			s.box.Nudge()
			if e := receive(t, hanging, "the send with priority"); e.ID != first.ID {
				t.Errorf("sent %+v", e)
			}
		})
		t.Run("gives every account its turn, one place at a time", func(t *testing.T) {
			s := set(t, keyed)
			s.target.Sends.Places = 1
			s.build()
			s.enqueue(s.account+"flood1", keys(30)...)
			s.enqueue(s.account+"flood2", keys(30)...)
			s.clock.advance(time.Second)
			s.enqueue(s.account, "k")
			turns := make(chan string, 100)
			s.desk.onSend = func(e Effect) Evidence { turns <- e.AccountID; return Evidence{Finding: Confirmed} }
			s.run()
			for turn := 1; receive(t, turns, "the next send") != s.account; turn++ {
				if turn == 3 {
					t.Fatal("not among the first three")
				}
			}
			s.eventually("all are sent", func() bool { return s.desk.called(kindSend) == 61 })
		})
		t.Run("begins no more than its limit in a second", func(t *testing.T) {
			s := set(t, keyed)
			s.target.Sends = Limit{Places: 1, PerSecond: 20}
			s.build()
			s.enqueue(s.account, keys(5)...)
			began := time.Now()
			s.run()
			s.eventually("all are sent", func() bool { return s.desk.called(kindSend) == 5 })
			if took := time.Since(began); took < 4*50*time.Millisecond {
				t.Errorf("%s", took)
			}
		})
		t.Run("outlives a provider that panics, and clears up what that did", func(t *testing.T) {
			s := set(t, keyed)
			s.target.AskEvery = 10 * time.Millisecond
			s.build()
			var once sync.Once
			s.desk.onSend = func(Effect) Evidence {
				once.Do(func() { panic("nil map") })
				return Evidence{Finding: Confirmed, Reference: "D-1"}
			}
			s.run()
			e := s.accept("k")
			s.box.Nudge()
			e = s.becomes(e, idempotency.Succeeded)
			if s.desk.called(kindSend) != 2 || s.desk.called(kindLookup) != 1 || e.Attempts != 2 {
				t.Errorf("%+v", s.desk.calls)
			}
		})
	})
}

// patient is a desk whose sends end when their context does, at the latest.
type patient struct {
	*desk
	begun chan struct{}
	free  chan struct{}
}

func (p patient) Send(ctx context.Context, e Effect) Evidence {
	close(p.begun)
	select {
	case <-p.free:
		return p.desk.Send(ctx, e)
	case <-ctx.Done():
		return Evidence{Finding: Ambiguous, Says: "no answer in time"}
	}
}

func TestShutdown(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, set func(*testing.T, Ability) *stage) {
		t.Run("lets a call under way end, and settles it", func(t *testing.T) {
			s := set(t, lookedUp)
			p := patient{s.desk, make(chan struct{}), make(chan struct{})}
			s.target.Provider, s.target.Timeout, s.target.Lease = p, patience, 2*patience
			s.build()
			e := s.accept("k")
			stop := s.run()
			receive(t, p.begun, "the send")
			later := s.accept("later")
			stopped := make(chan struct{})
			go func() { stop(); close(stopped) }()
			s.box.Nudge()
			select {
			case <-stopped:
				t.Fatal("did not wait")
			case <-time.After(50 * time.Millisecond):
			}
			close(p.free)
			receive(t, stopped, "the end of the outbox")
			if e = s.now(e); e.State != idempotency.Succeeded || s.operation(e).State != idempotency.Succeeded {
				t.Errorf("%+v", e)
			}
			if later = s.now(later); later.State != idempotency.Queued || later.Fence != 0 {
				t.Errorf("taken after the end: %+v", later)
			}
		})
	})
}

// An account with ten thousand due effects, and another one with as many, do not make a third wait.
func TestListGivesEveryAccountAShare(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, set func(*testing.T, Ability) *stage) {
		s := set(t, keyed)
		many := 10_000
		if s.db.Kind() == database.SQLite {
			many = 1000 // with the race detector SQLite takes seconds for more
		}
		flood := func(account string) {
			s.ok(s.db.Read(t.Context()).Exec(`INSERT INTO effects (account_id, id, operation_id, idempotency_key, type, target, effect_key, command, state,
					fence, leased_by, next_at, attempts, asks, priority, reference, review_id, created_at, updated_at)
				WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
				SELECT ?, 'eff_' || i, 'op_' || i, 'k', 'ticket.mirror', ?, 'k', ?, 'queued', 0, '', ?, 0, 0, ?, '', '', ?, ? FROM n`,
				many, account, s.target.Name, []byte{}, s.db.Now(), false, s.db.Now(), s.db.Now()).Error)
		}
		flood("flood1")
		s.clock.advance(time.Second)
		flood("flood2")
		s.clock.advance(time.Second)
		e := s.accept("k")
		l := s.box.lanes(s.target)[0]
		list, err := s.box.list(t.Context(), l)
		s.ok(err)
		if most := listed * cap(l.places); len(list) > most+2 {
			t.Errorf("%d listed", len(list))
		}
		turn := slices.IndexFunc(list, func(listed Effect) bool { return listed.ID == e.ID })
		if turn < 0 || turn > 2 {
			t.Errorf("its turn is %d of %d", turn, len(list))
		}
		s.ok(s.db.Read(t.Context()).Exec("DELETE FROM effects WHERE account_id LIKE 'flood%'").Error)
	})
}

func TestRotate(t *testing.T) {
	var effects []Effect
	for _, id := range []string{"a1", "a2", "a3", "b1", "c1", "c2"} {
		effects = append(effects, Effect{ID: id, AccountID: id[:1]})
	}
	for limit, want := range map[int][]string{
		10: {"a1", "b1", "c1", "a2", "c2", "a3"},
		5:  {"a1", "b1", "c1", "a2", "c2"},
		1:  {"a1", "b1", "c1"}, // nobody is left out
	} {
		var got []string
		for _, e := range rotate(effects, limit) {
			got = append(got, e.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("up to %d: got %q, want %q", limit, got, want)
		}
	}
}

func TestTwoReplicasDrainOneDatabase(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		effects := 2000
		if kind == database.SQLite {
			effects = 200 // each is two commits, and they wait for the disk one after the other
		}
		url := dbtest.URL(t, kind)
		s, other := newStage(t, url, lookedUp), newStage(t, url, lookedUp)
		other.target.Provider, other.target.Name = s.desk, s.target.Name
		for _, replica := range []*stage{s, other} {
			replica.box.pollEvery = 50 * time.Millisecond
			replica.target.Sends.Places = 8
			replica.build()
		}
		s.enqueue(s.account, keys(effects)...)
		began := time.Now()
		s.run()
		other.run()
		s.eventually("all effects are sent", func() bool { return s.desk.called(kindSend) >= effects })
		s.eventually("all effects have happened", func() bool {
			var open int64
			s.ok(s.db.Read(t.Context()).Table("effects").Where("state <> 'succeeded'").Count(&open).Error)
			return open == 0
		})
		t.Logf("%d effects in %s", effects, time.Since(began).Round(time.Millisecond))
		s.desk.mu.Lock()
		defer s.desk.mu.Unlock()
		if len(s.desk.sends) != effects {
			t.Errorf("%d effects were sent, want %d", len(s.desk.sends), effects)
		}
		for key, n := range s.desk.sends {
			if n != 1 {
				t.Errorf("%s was sent %d times", key, n)
			}
		}
	})
}
