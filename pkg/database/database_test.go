package database_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

const insertEvent = `INSERT INTO events (account_id, id, type, at, principal, agent_run, request_id, operation_id, attempt_id, key_hash, fingerprint,
	route, effect_key, reference, from_state, to_state) VALUES ('a', ?, 't', ?, '', '', '', '', '', '', '', '', '', '', '', '')`

func events(t *testing.T, db *database.DB) (n int64) {
	t.Helper()
	if err := db.Read(t.Context()).Table("events").Count(&n).Error; err != nil {
		t.Fatal(err)
	}
	return n
}

func TestInTx(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		t.Run("commits what fn wrote, at once or at commit", func(t *testing.T) {
			db := dbtest.Open(t, kind)
			err := db.InTx(t.Context(), func(tx database.Tx) error {
				if first := tx.Exec(insertEvent, "1", tx.Now); first.Error != nil || first.RowsAffected != 1 {
					return errors.Join(first.Error, errors.New("first insert"))
				}
				return tx.AtCommit().Exec(insertEvent, "2", tx.Now).Error
			})
			if err != nil || events(t, db) != 2 {
				t.Fatalf("error %v, events %d, want 2", err, events(t, db))
			}
		})
		t.Run("commits a transaction that only writes at commit", func(t *testing.T) {
			db := dbtest.Open(t, kind)
			err := db.InTx(t.Context(), func(tx database.Tx) error { return tx.AtCommit().Exec(insertEvent, "1", tx.Now).Error })
			if err != nil || events(t, db) != 1 {
				t.Fatalf("error %v, events %d, want 1", err, events(t, db))
			}
		})
		t.Run("rolls everything back when fn fails, and passes its error on", func(t *testing.T) {
			db := dbtest.Open(t, kind)
			no := errors.New("no")
			err := db.InTx(t.Context(), func(tx database.Tx) error {
				return errors.Join(tx.Exec(insertEvent, "1", tx.Now).Error, tx.AtCommit().Exec(insertEvent, "2", tx.Now).Error, no)
			})
			if !errors.Is(err, no) || events(t, db) != 0 {
				t.Fatalf("error %v, events %d, want 0", err, events(t, db))
			}
		})
		t.Run("rolls back when a statement at commit fails, and leaves a usable connection", func(t *testing.T) {
			db := dbtest.OpenWith(t, kind, database.Options{MaxConns: 1})
			err := db.InTx(t.Context(), func(tx database.Tx) error {
				if err := tx.Exec(insertEvent, "1", tx.Now).Error; err != nil {
					t.Error(err)
				}
				return tx.AtCommit().Exec(insertEvent, "1", tx.Now).Error // the same primary key
			})
			if err == nil || errors.Is(err, database.ErrCommitUnknown) || events(t, db) != 0 {
				t.Fatalf("error %v, events %d, want a definite failure and 0", err, events(t, db))
			}
		})
		t.Run("rolls back when fn panics, and leaks no connection", func(t *testing.T) {
			db := dbtest.OpenWith(t, kind, database.Options{MaxConns: 2})
			for range 20 {
				func() {
					defer func() {
						if recover() == nil {
							t.Error("the panic was swallowed")
						}
					}()
					_ = db.InTx(t.Context(), func(tx database.Tx) error {
						if err := tx.Exec(insertEvent, "1", tx.Now).Error; err != nil {
							t.Error(err)
						}
						panic("boom")
					})
				}()
			}
			if n := events(t, db); n != 0 {
				t.Fatalf("events %d, want 0", n)
			}
			if in := db.SQL().Stats().InUse; in != 0 {
				t.Fatalf("%d connections still in use", in)
			}
		})
		t.Run("a COMMIT goes through although its caller has left", func(t *testing.T) {
			db := dbtest.Open(t, kind)
			ctx, hangUp := context.WithCancel(t.Context())
			err := db.InTx(ctx, func(tx database.Tx) error {
				defer hangUp()
				return tx.Exec(insertEvent, "1", tx.Now).Error
			})
			if err != nil || events(t, db) != 1 {
				t.Fatalf("error %v, events %d, want 1", err, events(t, db))
			}
		})
		t.Run("a context that ends inside fn is busy, not lost", func(t *testing.T) {
			db := dbtest.Open(t, kind)
			ctx, cancel := context.WithCancel(t.Context())
			err := db.InTx(ctx, func(tx database.Tx) error {
				cancel()
				return tx.Exec(insertEvent, "1", tx.Now).Error
			})
			if !errors.Is(err, database.ErrBusy) || events(t, db) != 0 {
				t.Fatalf("error %v, events %d, want ErrBusy and 0", err, events(t, db))
			}
		})
		t.Run("a lock held elsewhere is busy after the lock time-out", func(t *testing.T) {
			url := dbtest.URL(t, kind)
			one := dbtest.Connect(t, url, database.Options{})
			two := dbtest.Connect(t, url, database.Options{LockTimeout: 50 * time.Millisecond})
			err := one.InTx(t.Context(), func(tx database.Tx) error {
				if err := tx.Exec(insertEvent, "1", tx.Now).Error; err != nil {
					return err
				}
				err := two.InTx(t.Context(), func(tx database.Tx) error { return tx.Exec(insertEvent, "1", tx.Now).Error })
				if !errors.Is(err, database.ErrBusy) {
					t.Errorf("second writer: %v, want ErrBusy", err)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		})
		t.Run("gives every transaction one time, in whole microseconds, that the database keeps", func(t *testing.T) {
			db := dbtest.Open(t, kind)
			var want time.Time
			err := db.InTx(t.Context(), func(tx database.Tx) error {
				want = tx.Now
				return tx.Exec(insertEvent, "1", tx.Now).Error
			})
			if err != nil {
				t.Fatal(err)
			}
			var row struct{ At time.Time }
			if err := db.Read(t.Context()).Table("events").Select("at").Take(&row).Error; err != nil {
				t.Fatal(err)
			}
			if !row.At.Equal(want) || want.Location() != time.UTC || want.Nanosecond()%1000 != 0 {
				t.Fatalf("stored %v, transaction had %v", row.At, want)
			}
		})
	})
}

func TestLockCondition(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		if kind == database.SQLite {
			return // one writer: there is no second transaction to meet
		}
		t.Run("is false in a second transaction until the first has ended", func(t *testing.T) {
			db := dbtest.Open(t, kind)
			free := func(tx database.Tx) (free bool) {
				t.Helper()
				if err := tx.Raw("SELECT ?", tx.LockCondition("name", "x")).Scan(&free).Error; err != nil {
					t.Fatal(err)
				}
				return free
			}
			second := func() (got bool) {
				t.Helper()
				if err := db.InTx(t.Context(), func(tx database.Tx) error { got = free(tx); return nil }); err != nil {
					t.Fatal(err)
				}
				return got
			}
			err := db.InTx(t.Context(), func(tx database.Tx) error {
				for range 2 { // who has it may ask again
					if !free(tx) {
						t.Error("the first transaction did not get the lock")
					}
				}
				if second() {
					t.Error("the second transaction got the lock too")
				}
				return nil
			})
			if err != nil || !second() {
				t.Fatalf("error %v; the lock outlived its transaction", err)
			}
		})
	})
}

func TestOpen(t *testing.T) {
	t.Run("refuses a URL that it does not know, without repeating it", func(t *testing.T) {
		_, err := database.Open(t.Context(), "mysql://root:secret@host/db", database.Options{})
		if err == nil || errors.Is(err, database.ErrUnavailable) {
			t.Fatalf("got %v", err)
		}
	})
	t.Run("is unavailable where nothing listens", func(t *testing.T) {
		_, err := database.Open(t.Context(), "postgres://127.0.0.1:1/x", database.Options{})
		if !errors.Is(err, database.ErrUnavailable) {
			t.Fatalf("got %v", err)
		}
	})
}
