package outbox

import (
	"bytes"
	"context"
	"net"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/idempotency"
)

func TestBeforeAByteLeaves(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, set func(*testing.T, Ability) *stage) {
		t.Run("the take is committed", func(t *testing.T) {
			s := set(t, lookedUp)
			e := s.accept("k")
			s.desk.onSend = func(given Effect) Evidence {
				e := s.now(e) // as anybody else sees it while the call is under way
				if e.State != idempotency.Running || e.Fence != 1 || !e.inDoubt() || *e.Doubt != 1 || e.LeasedBy == "" || e.FirstSentAt == nil {
					t.Errorf("the effect during its send: %+v", e)
				}
				if given.Fence != e.Fence || given.EffectKey != e.EffectKey || string(given.Command) != "k" {
					t.Errorf("the provider was given %+v", given)
				}
				sends := s.operation(e).Effect.Sends
				if len(sends) != 1 || sends[0].EndedAt != nil || sends[0].Outcome != "" {
					t.Errorf("the operation's attempts during its send: %+v", sends)
				}
				return Evidence{Finding: Confirmed, Reference: "D-1"}
			}
			s.send(e)
			if s.desk.called(kindSend) != 1 {
				t.Fatal("not sent")
			}
		})
		t.Run("a worker that slept past its time to send makes no call, though the database's clock stands still", func(t *testing.T) {
			s := set(t, lookedUp)
			s.target.Timeout, s.target.Lease = 9950*time.Millisecond, 10*time.Second // a take, too, has as long as a lease
			s.build()
			e := s.accept("k")
			record := s.record
			s.record = func(tx database.Tx, events ...idempotency.Event) error {
				if events[0].Type == idempotency.Sent {
					<-time.After(100 * time.Millisecond) // inside the take: longer than lease − time-out
				}
				return record(tx, events...)
			}
			e = s.send(e)
			if s.desk.called(kindSend) != 0 {
				t.Error("sent all the same")
			}
			if e.State != idempotency.Queued || e.inDoubt() || e.Attempts != 1 {
				t.Errorf("the effect: %+v", e)
			}
			if sends := s.operation(e).Effect.Sends; len(sends) != 1 || sends[0].Outcome != string(NotSent) {
				t.Errorf("its attempts: %+v", sends)
			}
		})
		t.Run("of two workers one takes", func(t *testing.T) {
			s := set(t, keyed)
			e := s.accept("k")
			s.take(e)
			s.ok(s.box.send(context.Background(), s.target, e)) // as it was listed
			if s.desk.called(kindSend) != 0 || s.now(e).Fence != 1 {
				t.Errorf("taken twice: %+v", s.now(e))
			}
		})
	})
}

func TestTakeWhoseCommitGotNoAnswer(t *testing.T) {
	t.Parallel()
	direct := dbtest.URL(t, database.Postgres)
	proxy := loseCommits(t, direct)
	s := newStage(t, proxy.url, keyed)

	t.Run("is read back, and sent if it is there", func(t *testing.T) {
		e := s.accept("there")
		proxy.lose(func() {})
		e = s.send(e)
		if !proxy.lost() || s.desk.called(kindSend) != 1 || e.State != idempotency.Succeeded {
			t.Errorf("lost %v, %d sends, %+v", proxy.lost(), s.desk.called(kindSend), e)
		}
	})
	t.Run("is not sent if somebody else has it by now", func(t *testing.T) {
		other := dbtest.Connect(t, direct, database.Options{})
		e := s.accept("other")
		before := s.desk.called(kindSend)
		proxy.lose(func() {
			if err := other.Read(context.Background()).Exec("UPDATE effects SET fence = fence + 1, leased_by = 'try_other' WHERE id = ?", e.ID).Error; err != nil {
				t.Error(err)
			}
		})
		e = s.send(e)
		if s.desk.called(kindSend) != before || e.Fence != 2 || e.LeasedBy != "try_other" {
			t.Errorf("%d sends, %+v", s.desk.called(kindSend)-before, e)
		}
	})
	t.Run("is not sent if it is not there", func(t *testing.T) {
		// A trigger that PostgreSQL runs inside COMMIT and that ends its own session.
		for _, statement := range []string{
			`CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END'`,
			`CREATE CONSTRAINT TRIGGER die AFTER INSERT ON attempts DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION die()`,
		} {
			s.ok(s.db.Read(context.Background()).Exec(statement).Error)
		}
		e := s.accept("gone")
		before := s.desk.called(kindSend)
		e = s.send(e)
		if s.desk.called(kindSend) != before || e.State != idempotency.Queued || e.Fence != 0 || e.inDoubt() {
			t.Errorf("%d sends, %+v", s.desk.called(kindSend)-before, e)
		}
	})
}

func TestTimeToSend(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) *time.Time { at := now.Add(-d); return &at }
	for _, c := range []struct {
		name    string
		ability Ability
		first   *time.Time
		want    time.Duration // from now
	}{
		{"ends a call before the lease", lookedUp, nil, 9 * time.Second},
		{"has nothing to do with a window where there are no keys", lookedUp, ago(24 * time.Hour), 9 * time.Second},
		{"of a first send is within a window that is shorter than the lease", Ability{Key: true, KeyWindow: 5 * time.Second}, nil, 4 * time.Second},
		{"of a later send is within the first one's window", keyed, ago(time.Hour - 4*time.Second), 3 * time.Second},
		{"is over when a call could end after the window", keyed, ago(time.Hour - time.Second), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			target := Target{Ability: c.ability, Timeout: time.Second, Lease: 10 * time.Second, MaxAttempts: 3}
			e := Effect{FirstSentAt: c.first}
			if got := target.sendBy(e, now).Sub(now); got != c.want {
				t.Errorf("%s from now, want %s", got, c.want)
			}
			if target.maySend(e, now) != (c.want > 0) {
				t.Errorf("may send: %v", target.maySend(e, now))
			}
		})
	}
}

func TestOwnClock(t *testing.T) {
	limit := time.Date(2030, 1, 1, 0, 0, 1, 0, time.UTC)
	for _, c := range []struct {
		name   string
		passed time.Duration // by our monotonic clock, since the database's said a second before the limit
		want   bool
	}{
		{"counts what has passed since the take", 500 * time.Millisecond, true},
		{"says no as soon as the limit is reached", time.Second, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := moment{database: limit.Add(-time.Second), local: time.Now().Add(-c.passed)}
			if m.before(&limit) != c.want {
				t.Errorf("before the limit: %v", !c.want)
			}
		})
	}
	t.Run("says no where there is no limit", func(t *testing.T) {
		if (moment{limit, time.Now()}).before(nil) {
			t.Error("yes")
		}
	})
}

func TestProviderThatPanics(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		ability Ability
	}{{"by key", keyed}, {"by floor", floored}, {"by look-up", lookedUp}, {"not at all", unable}} {
		t.Run("has shown nothing, at a target that can be cleared up "+c.name, func(t *testing.T) {
			s := newStage(t, dbtest.URL(t, database.SQLite), c.ability)
			s.desk.onSend = func(Effect) Evidence { panic("nil map") }
			e := s.send(s.accept("k"))
			if e.State != idempotency.Unknown || !e.inDoubt() {
				t.Errorf("the effect: %+v", e)
			}
			if sends := s.operation(e).Effect.Sends; len(sends) != 1 || sends[0].Outcome != string(Ambiguous) {
				t.Errorf("its attempts: %+v", sends)
			}
		})
	}
}

// commitProxy stands between a pool and PostgreSQL. It cuts the connection on which the next COMMIT is answered after lose, before
// the answer is passed on.
type commitProxy struct {
	url  string
	trap atomic.Pointer[func()] // what happens before the pool notices
}

func (p *commitProxy) lose(meanwhile func()) { p.trap.Store(&meanwhile) }

// lost reports whether it has done so.
func (p *commitProxy) lost() bool { return p.trap.Load() == nil }

func loseCommits(t *testing.T, direct string) *commitProxy {
	t.Helper()
	u, err := url.Parse(direct)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	server := u.Host
	u.Host = listener.Addr().String()
	p := &commitProxy{url: u.String()}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			upstream, err := new(net.Dialer).DialContext(context.Background(), "tcp", server)
			if err != nil {
				client.Close()
				continue
			}
			go pass(upstream, client, func([]byte) bool { return true })
			go pass(client, upstream, func(answer []byte) bool {
				if !bytes.Contains(answer, []byte("COMMIT\x00")) {
					return true
				}
				meanwhile := p.trap.Swap(nil)
				if meanwhile != nil {
					(*meanwhile)()
				}
				return meanwhile == nil
			})
		}
	}()
	return p
}

// pass passes bytes on until a side leaves or ok says no; then both are cut.
func pass(to, from net.Conn, ok func([]byte) bool) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && !ok(buffer[:n]) {
			return
		}
		if _, writeErr := to.Write(buffer[:n]); err != nil || writeErr != nil {
			return
		}
	}
}
