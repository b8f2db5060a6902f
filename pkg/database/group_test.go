package database_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
)

// hold keeps SQLite's writer until release is called: those that come meanwhile are one group.
func hold(t *testing.T, db *database.DB) (release func()) {
	t.Helper()
	held, free, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	no := errors.New("no")
	go func() {
		defer close(ended)
		if err := db.InTx(context.Background(), func(database.Tx) error { close(held); <-free; return no }); !errors.Is(err, no) {
			t.Error(err)
		}
	}()
	<-held
	return func() { close(free); <-ended }
}

// member is one transaction of a group, and what became of it.
type member struct {
	do   func(tx database.Tx) error
	ctx  context.Context
	err  error
	told chan struct{} // closed when err is known
}

func inserts(id string) *member {
	return &member{do: func(tx database.Tx) error { return tx.Exec(insertEvent, id, tx.Now).Error }}
}

// begin lets the members get into line in their order, behind whoever holds the writer.
func begin(t *testing.T, db *database.DB, members ...*member) {
	t.Helper()
	for _, m := range members {
		if m.ctx == nil {
			m.ctx = t.Context()
		}
		m.told = make(chan struct{})
		before := database.Waiting(db)
		go func() {
			defer close(m.told)
			defer func() {
				if r := recover(); r != nil {
					m.err = fmt.Errorf("panic: %v", r)
				}
			}()
			m.err = db.InTx(m.ctx, m.do)
		}()
		for end := time.Now().Add(20 * time.Second); database.Waiting(db) == before; <-time.After(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("a transaction does not get into line")
			}
		}
	}
}

// group runs the members as one, or as few groups as possible, and waits until all have been told.
func group(t *testing.T, db *database.DB, members ...*member) {
	t.Helper()
	release := hold(t, db)
	begin(t, db, members...)
	release()
	for _, m := range members {
		<-m.told
	}
}

func ids(t *testing.T, db *database.DB) string {
	t.Helper()
	var all []string
	if err := db.Read(t.Context()).Raw("SELECT id FROM events ORDER BY id").Scan(&all).Error; err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, " ")
}

// commits counts the transactions in SQLite's log: the last page of each says how large the database is after it.
func commits(t *testing.T, url string) (n int) {
	t.Helper()
	log, err := os.ReadFile(strings.TrimPrefix(url, "sqlite:") + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	const header, frameHeader, page = 32, 24, 4096
	for at := header; at+frameHeader <= len(log); at += frameHeader + page {
		if binary.BigEndian.Uint32(log[at+4:]) != 0 {
			n++
		}
	}
	return n
}

func TestGroup(t *testing.T) {
	t.Run("those that have waited share one COMMIT, and each has its own time", func(t *testing.T) {
		url := dbtest.URL(t, database.SQLite)
		db := dbtest.Connect(t, url, database.Options{})
		before := commits(t, url)
		var members []*member
		times := map[time.Time]bool{}
		for i := range 5 {
			members = append(members, &member{do: func(tx database.Tx) error {
				times[tx.Now] = true
				return tx.Exec(insertEvent, fmt.Sprint(i), tx.Now).Error
			}})
		}
		group(t, db, members...)
		for _, m := range members {
			if m.err != nil {
				t.Error(m.err)
			}
		}
		if got := commits(t, url) - before; got != 1 || ids(t, db) != "0 1 2 3 4" || len(times) != 5 {
			t.Errorf("%d commits of %q, %d times", got, ids(t, db), len(times))
		}
	})
	t.Run("it has a limit, so that the first need not wait for ever", func(t *testing.T) {
		url := dbtest.URL(t, database.SQLite)
		db := dbtest.Connect(t, url, database.Options{})
		before := commits(t, url)
		var members []*member
		for i := range 2*database.MaxGroup + 1 {
			members = append(members, inserts(fmt.Sprint(i)))
		}
		group(t, db, members...)
		if got := commits(t, url) - before; got != 3 || events(t, db) != int64(len(members)) {
			t.Errorf("%d commits of %d rows", got, events(t, db))
		}
	})
	t.Run("nobody is told before what he has seen is durable", func(t *testing.T) {
		db := dbtest.Open(t, database.SQLite)
		no := errors.New("no")
		seen := func(want int) func(tx database.Tx) error {
			return func(tx database.Tx) error {
				var n int
				if err := tx.Raw("SELECT count(*) FROM events").Scan(&n).Error; err != nil || n != want {
					t.Errorf("a member sees %d rows of those before it, want %d; %v", n, want, err)
				}
				if n := events(t, db); n != 0 {
					t.Errorf("others see %d rows", n)
				}
				return no
			}
		}
		first, second, third := inserts("1"), &member{do: seen(1)}, &member{}
		third.do = func(tx database.Tx) error {
			for _, told := range []chan struct{}{first.told, second.told} {
				select {
				case <-told:
					t.Error("told before the COMMIT")
				case <-time.After(20 * time.Millisecond):
				}
			}
			return seen(1)(tx)
		}
		group(t, db, first, second, third)
		if first.err != nil || !errors.Is(second.err, no) || !errors.Is(third.err, no) || ids(t, db) != "1" {
			t.Errorf("%v, %v, %v; %q", first.err, second.err, third.err, ids(t, db))
		}
	})

	no := errors.New("no")
	canceled, cancel := context.WithCancel(t.Context())
	failures := map[string]struct {
		fails *member
		as    func(err error) bool
	}{
		"returns an error": {
			&member{do: func(tx database.Tx) error { return errors.Join(tx.Exec(insertEvent, "x", tx.Now).Error, no) }},
			func(err error) bool { return errors.Is(err, no) },
		},
		"panics": {
			&member{do: func(tx database.Tx) error { _ = tx.Exec(insertEvent, "x", tx.Now); panic("boom") }},
			func(err error) bool { return err != nil && err.Error() == "panic: boom" },
		},
		"breaks a constraint, and swallows that": {
			&member{do: func(tx database.Tx) error {
				_ = tx.Exec(insertEvent, "x", tx.Now)
				_ = tx.Exec(insertEvent, "x", tx.Now)
				return nil
			}},
			func(err error) bool { return err != nil && !errors.Is(err, database.ErrCommitUnknown) },
		},
		"ends with its context": {
			&member{ctx: canceled, do: func(tx database.Tx) error {
				_ = tx.Exec(insertEvent, "x", tx.Now)
				cancel()
				return tx.Exec(insertEvent, "y", tx.Now).Error
			}},
			func(err error) bool { return errors.Is(err, database.ErrBusy) },
		},
	}
	for name, f := range failures {
		for place := range 3 {
			t.Run(fmt.Sprintf("a member that %s takes back only its own, in place %d", name, place), func(t *testing.T) {
				db := dbtest.Open(t, database.SQLite)
				fails := *f.fails
				if fails.ctx != nil {
					fails.ctx, cancel = context.WithCancel(t.Context())
				}
				members := slices.Insert([]*member{inserts("1"), inserts("2")}, place, &fails)
				group(t, db, members...)
				for i, m := range members {
					if i != place && m.err != nil || i == place && !f.as(m.err) {
						t.Errorf("member %d: %v", i, m.err)
					}
				}
				if ids(t, db) != "1 2" {
					t.Errorf("rows %q", ids(t, db))
				}
				if err := db.InTx(t.Context(), inserts("3").do); err != nil || ids(t, db) != "1 2 3" {
					t.Errorf("afterwards: %v, rows %q", err, ids(t, db))
				}
			})
		}
	}
	t.Run("one that leaves the line takes nobody's turn", func(t *testing.T) {
		db := dbtest.Open(t, database.SQLite)
		ctx, hangUp := context.WithCancel(t.Context())
		leaves := inserts("x")
		leaves.ctx = ctx
		members := []*member{inserts("1"), leaves, inserts("2")}
		release := hold(t, db)
		begin(t, db, members...)
		hangUp()
		<-leaves.told
		release()
		<-members[0].told
		<-members[2].told
		if !errors.Is(leaves.err, database.ErrBusy) || members[0].err != nil || members[2].err != nil || ids(t, db) != "1 2" {
			t.Errorf("%v, %v, %v; rows %q", members[0].err, leaves.err, members[2].err, ids(t, db))
		}
	})
	// SQLite takes the whole transaction back when a statement of it is interrupted while it writes.
	t.Run("a write that is interrupted leaves nothing of the group, and all are told to try again", func(t *testing.T) {
		db := dbtest.Open(t, database.SQLite)
		short, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		interrupted := &member{ctx: short, do: func(tx database.Tx) error {
			short, cancel := context.WithTimeout(tx.Statement.Context, 30*time.Millisecond)
			defer cancel()
			return tx.WithContext(short).Exec(`INSERT INTO events SELECT e.* FROM events e,
				(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n) s`).Error
		}}
		first, last := inserts("1"), inserts("2")
		group(t, db, first, interrupted, last)
		if !errors.Is(first.err, database.ErrBusy) || !errors.Is(interrupted.err, database.ErrBusy) || last.err != nil || ids(t, db) != "2" {
			t.Errorf("%v, %v, %v; rows %q", first.err, interrupted.err, last.err, ids(t, db))
		}
	})
	t.Run("a COMMIT that SQLite refuses is refused to all, definitely", func(t *testing.T) {
		db := dbtest.Open(t, database.SQLite)
		exec(t, db, "CREATE TABLE parents (id text PRIMARY KEY)")
		exec(t, db, "CREATE TABLE children (parent text REFERENCES parents (id) DEFERRABLE INITIALLY DEFERRED)")
		first := inserts("1")
		orphan := &member{do: func(tx database.Tx) error { return tx.Exec("INSERT INTO children VALUES ('nobody')").Error }}
		group(t, db, first, orphan)
		for _, m := range []*member{first, orphan} {
			if m.err == nil || errors.Is(m.err, database.ErrCommitUnknown) {
				t.Errorf("got %v, want a definite failure", m.err)
			}
		}
		if err := db.InTx(t.Context(), inserts("2").do); err != nil || ids(t, db) != "2" {
			t.Errorf("afterwards: %v, rows %q", err, ids(t, db))
		}
	})
}
