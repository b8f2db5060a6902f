package approval_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/approval"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/idempotency"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

const ttl = time.Minute

// asked is a database with a clock that the test moves, and what was asked there.
type asked struct {
	t   *testing.T
	db  *database.DB
	now time.Time
}

func newAsked(t *testing.T, kind database.Kind) *asked {
	s := &asked{t: t, now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	s.db = dbtest.OpenWith(t, kind, database.Options{Clock: func() time.Time { return s.now }})
	return s
}

func (s *asked) inTx(fn func(tx database.Tx) error) error { return s.db.InTx(s.t.Context(), fn) }

// ask asks about an operation of an account.
func (s *asked) ask(account, operation string) (a approval.Approval) {
	s.t.Helper()
	op := idempotency.Operation{AccountID: account, ID: operation, IdempotencyKey: "k", Fingerprint: "v1:f", Principal: "agent"}
	err := s.inTx(func(tx database.Tx) (err error) {
		a, err = approval.Ask(tx, op, approval.Question{Facts: map[string]int{"b": 1, "a": 2}, Consequence: "It happens."}, "world 1", tx.Now.Add(ttl))
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

func (s *asked) read(a approval.Approval) approval.Approval {
	s.t.Helper()
	got, err := approval.Get(s.db.Read(s.t.Context()), a.AccountID, a.ID)
	if err != nil {
		s.t.Fatal(err)
	}
	return got
}

func (s *asked) decide(a approval.Approval, d approval.Decision) error {
	return s.inTx(func(tx database.Tx) error {
		_, err := approval.Decide(tx, a, d)
		return err
	})
}

func yes(by string) approval.Decision {
	return approval.Decision{By: by, Approve: true, Fingerprint: "v1:f"}
}

func TestAQuestion(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := newAsked(t, kind)
		first := s.ask("acme", "op_1")

		t.Run("is kept as it was put", func(t *testing.T) {
			want := approval.Approval{
				AccountID: "acme", ID: first.ID, OperationID: "op_1", IdempotencyKey: "k", Fingerprint: "v1:f", WorldVersion: "world 1", RequestedBy: "agent",
				Facts: `{"a":2,"b":1}`, Consequence: "It happens.", State: approval.Pending, CreatedAt: s.now, ExpiresAt: s.now.Add(ttl),
			}
			if diff := cmp.Diff(want, s.read(first)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
		t.Run("is the account's alone", func(t *testing.T) {
			if _, err := approval.Get(s.db.Read(t.Context()), "globex", first.ID); !errors.Is(err, approval.ErrNotFound) {
				t.Error(err)
			}
			if all, err := approval.List(t.Context(), s.db, "globex", "", "", 10); err != nil || len(all) != 0 {
				t.Errorf("%+v, %v", all, err)
			}
		})
		t.Run("is put once for an operation", func(t *testing.T) {
			err := s.inTx(func(tx database.Tx) error {
				_, err := approval.Ask(tx, idempotency.Operation{AccountID: "acme", ID: "op_1"}, approval.Question{}, "", tx.Now.Add(ttl))
				return err
			})
			if err == nil {
				t.Error("asked twice")
			}
		})
		t.Run("is listed, newest first, by state", func(t *testing.T) {
			s.now = s.now.Add(time.Millisecond)
			second := s.ask("acme", "op_2")
			if err := s.decide(second, approval.Decision{By: "boss", Fingerprint: "v1:f"}); err != nil {
				t.Fatal(err)
			}
			ids := func(state approval.State, before string, limit int) (all []string) {
				found, err := approval.List(t.Context(), s.db, "acme", state, before, limit)
				if err != nil {
					t.Fatal(err)
				}
				for _, a := range found {
					all = append(all, a.ID)
				}
				return all
			}
			for name, c := range map[string]struct{ want, got []string }{
				"all":              {[]string{second.ID, first.ID}, ids("", "", 10)},
				"the newest":       {[]string{second.ID}, ids("", "", 1)},
				"those before one": {[]string{first.ID}, ids("", second.ID, 10)},
				"those rejected":   {[]string{second.ID}, ids(approval.Rejected, "", 10)},
				"those pending":    {[]string{first.ID}, ids(approval.Pending, "", 10)},
			} {
				if diff := cmp.Diff(c.want, c.got); diff != "" {
					t.Errorf("%s (-want +got)\n%s", name, diff)
				}
			}
			if n, err := approval.CountPending(t.Context(), s.db); err != nil || n != 1 {
				t.Errorf("%d, %v", n, err)
			}
		})
	})
}

// The statement decides, whatever the question looked like when it was read.
func TestADecision(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		for name, c := range map[string]struct {
			decision approval.Decision
			later    time.Duration
			want     error
		}{
			"by another person, in time":                 {yes("boss"), ttl - 1000, nil},
			"by who has asked":                           {yes("agent"), 0, approval.ErrDecided},
			"about another fingerprint":                  {approval.Decision{By: "boss", Approve: true, Fingerprint: "v1:g"}, 0, approval.ErrDecided},
			"at the end of its time":                     {yes("boss"), ttl, approval.ErrDecided},
			"no, at the end of its time, counts neither": {approval.Decision{By: "boss", Fingerprint: "v1:f"}, ttl, approval.ErrDecided},
		} {
			t.Run(name, func(t *testing.T) {
				s := newAsked(t, kind)
				a := s.ask("acme", "op_1")
				s.now = s.now.Add(c.later)
				if err := s.decide(a, c.decision); !errors.Is(err, c.want) {
					t.Errorf("got %v", err)
				}
				got := s.read(a)
				if decided := got.State == approval.Approved && got.Approved && got.DecidedBy == "boss" && got.DecidedAt.Equal(s.now); decided != (c.want == nil) {
					t.Errorf("%+v", got)
				}
			})
		}
		t.Run("of many at once counts once", func(t *testing.T) {
			s := newAsked(t, kind)
			a := s.ask("acme", "op_1")
			var all sync.WaitGroup
			errs := make([]error, 8)
			for i := range errs {
				all.Go(func() { errs[i] = s.decide(a, yes(fmt.Sprintf("boss-%d", i))) })
			}
			all.Wait()
			won := 0
			for i, err := range errs {
				switch {
				case err == nil:
					won++
					if got := s.read(a); got.DecidedBy != fmt.Sprintf("boss-%d", i) {
						t.Errorf("%d has decided, and it was %s", i, got.DecidedBy)
					}
				case !errors.Is(err, approval.ErrDecided):
					t.Error(err)
				}
			}
			if won != 1 {
				t.Errorf("%d have decided", won)
			}
		})
		t.Run("stays written when what it let go can't go any more", func(t *testing.T) {
			s := newAsked(t, kind)
			a := s.ask("acme", "op_1")
			if err := s.decide(a, approval.Decision{By: "boss", Approve: true, Fingerprint: "v1:f", Reason: "fine"}); err != nil {
				t.Fatal(err)
			}
			end := func(as approval.State) {
				if err := s.inTx(func(tx database.Tx) error { _, err := approval.End(tx, a, as, "too late"); return err }); err != nil {
					t.Fatal(err)
				}
			}
			end(approval.Expired)
			end(approval.Stale) // which it is not any more
			if got := s.read(a); got.State != approval.Expired || got.DecidedBy != "boss" || !got.Approved || got.Reason != "fine" {
				t.Errorf("%+v", got)
			}
		})
	})
}

func TestOverdueQuestions(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := newAsked(t, kind)
		for i := range 5 {
			s.ask(fmt.Sprintf("acme-%d", i%2), fmt.Sprintf("op_%d", i))
			if i%2 == 1 {
				s.now = s.now.Add(time.Second) // so that some are due at the same time
			}
		}
		decided := s.ask("acme-0", "op_decided")
		if err := s.decide(decided, yes("boss")); err != nil {
			t.Fatal(err)
		}
		s.now = s.now.Add(ttl)
		young := s.ask("acme-0", "op_young")
		var last approval.Approval
		seen := map[string]bool{}
		for {
			some, err := approval.Overdue(s.db.Read(t.Context()), s.now, last, 2)
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range some {
				if seen[a.OperationID] || a.ID == young.ID || a.ID == decided.ID || a.ExpiresAt.Before(last.ExpiresAt) {
					t.Errorf("%+v after %+v", a, last)
				}
				seen[a.OperationID], last = true, a
			}
			if len(some) < 2 {
				break
			}
		}
		if len(seen) != 5 {
			t.Errorf("%d of 5 are overdue", len(seen))
		}
	})
}
