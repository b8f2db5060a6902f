package database_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
)

// Whatever goes wrong with a statement, what surrounds it must not be stored without it. The two databases differ in what they
// do by themselves: PostgreSQL refuses everything that follows, SQLite undoes only the statement, or (when it is interrupted)
// the whole transaction, and then stores what follows outside of any.
func TestAFailedStatementFailsItsTransaction(t *testing.T) {
	endless := map[database.Kind]string{
		database.Postgres: "INSERT INTO events SELECT e.* FROM events e, (SELECT pg_sleep(60)) s",
		database.SQLite: `INSERT INTO events SELECT e.* FROM events e,
			(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n) s`,
	}
	failures := []struct {
		name string
		fail func(tx database.Tx, kind database.Kind) error
	}{
		{"that breaks a constraint", func(tx database.Tx, _ database.Kind) error {
			return tx.Exec("INSERT INTO events (account_id, id) VALUES ('a', 'x')").Error
		}},
		{"that does not parse", func(tx database.Tx, _ database.Kind) error {
			return tx.Exec("INSERT INTO nowhere VALUES (1)").Error
		}},
		{"with an argument that can't be sent", func(tx database.Tx, _ database.Kind) error {
			return tx.Exec(insertEvent, "x", struct{ No int }{}).Error
		}},
		{"that is a query", func(tx database.Tx, _ database.Kind) error {
			return tx.Raw("SELECT id FROM nowhere").Scan(new(string)).Error
		}},
		{"that is a query for one row", func(tx database.Tx, _ database.Kind) error {
			return tx.Raw("SELECT id FROM nowhere").Row().Scan(new(string))
		}},
		{"whose time is over", func(tx database.Tx, kind database.Kind) error {
			short, cancel := context.WithTimeout(tx.Statement.Context, 30*time.Millisecond)
			defer cancel()
			return tx.WithContext(short).Exec(endless[kind]).Error
		}},
	}
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		db := dbtest.OpenWith(t, kind, database.Options{MaxConns: 2})
		if err := db.InTx(t.Context(), func(tx database.Tx) error { return tx.Exec(insertEvent, "before", tx.Now).Error }); err != nil {
			t.Fatal(err) // a row for the endless statement to read
		}
		check := func(t *testing.T, err error) {
			t.Helper()
			if err == nil || errors.Is(err, database.ErrCommitUnknown) {
				t.Errorf("got %v, want a definite failure", err)
			}
			if n := events(t, db); n != 1 {
				t.Errorf("%d rows, want only the one from before", n)
			}
			if in := db.SQL().Stats().InUse; in != 0 {
				t.Errorf("%d connections still in use", in)
			}
		}
		for _, f := range failures {
			fail := func(t *testing.T, tx database.Tx) {
				t.Helper()
				if f.fail(tx, kind) == nil {
					t.Error("the statement succeeded")
				}
			}
			t.Run("one "+f.name+", first of all and swallowed, before a write", func(t *testing.T) {
				check(t, db.InTx(t.Context(), func(tx database.Tx) error {
					fail(t, tx)
					_ = tx.Exec(insertEvent, "after", tx.Now)
					return nil
				}))
			})
			t.Run("one "+f.name+", first of all and swallowed, before a write and an error", func(t *testing.T) {
				check(t, db.InTx(t.Context(), func(tx database.Tx) error {
					fail(t, tx)
					_ = tx.Exec(insertEvent, "after", tx.Now)
					return errors.New("no")
				}))
			})
			t.Run("one "+f.name+", swallowed, between two writes", func(t *testing.T) {
				check(t, db.InTx(t.Context(), func(tx database.Tx) error {
					if err := tx.Exec(insertEvent, "first", tx.Now).Error; err != nil {
						t.Error(err)
					}
					fail(t, tx)
					_ = tx.Exec(insertEvent, "after", tx.Now)
					return nil
				}))
			})
			t.Run("one "+f.name+", swallowed, before a write at commit", func(t *testing.T) {
				check(t, db.InTx(t.Context(), func(tx database.Tx) error {
					fail(t, tx)
					_ = tx.AtCommit().Exec(insertEvent, "after", tx.Now)
					return nil
				}))
			})
		}
		t.Run("and is told as what it was, though nobody passed it on", func(t *testing.T) {
			err := db.InTx(t.Context(), func(tx database.Tx) error {
				short, cancel := context.WithTimeout(tx.Statement.Context, 30*time.Millisecond)
				defer cancel()
				_ = tx.WithContext(short).Exec(endless[kind])
				return nil
			})
			if !errors.Is(err, database.ErrBusy) {
				t.Errorf("got %v, want ErrBusy", err)
			}
		})
	})
}

func TestTheFirstStatementIsInTheTransaction(t *testing.T) {
	first := []struct {
		name string
		run  func(tx database.Tx) error
	}{
		{"executed", func(tx database.Tx) error { return tx.Exec(insertEvent, "1", tx.Now).Error }},
		{"queried", func(tx database.Tx) error {
			var ids []string
			return tx.Raw(insertEvent+" RETURNING id", "1", tx.Now).Scan(&ids).Error
		}},
		{"queried for one row", func(tx database.Tx) error {
			return tx.Raw(insertEvent+" RETURNING id", "1", tx.Now).Row().Scan(new(string))
		}},
	}
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		db := dbtest.OpenWith(t, kind, database.Options{MaxConns: 1})
		dbtest.Unprotect(t, db)
		for _, f := range first {
			t.Run(f.name+", it vanishes with a transaction that fails and stays with one that commits", func(t *testing.T) {
				exec(t, db, "DELETE FROM events")
				no := errors.New("no")
				if err := db.InTx(t.Context(), func(tx database.Tx) error { return errors.Join(f.run(tx), no) }); !errors.Is(err, no) {
					t.Fatal(err)
				}
				if n := events(t, db); n != 0 {
					t.Fatalf("%d rows after a rollback", n)
				}
				if err := db.InTx(t.Context(), f.run); err != nil {
					t.Fatal(err)
				}
				if n := events(t, db); n != 1 {
					t.Fatalf("%d rows after a commit", n)
				}
			})
		}
	})
}
