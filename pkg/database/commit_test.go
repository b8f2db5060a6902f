package database_test

import (
	"errors"
	"testing"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
)

func TestCommit(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		t.Run("that the database refuses is a definite failure, and leaves a usable connection", func(t *testing.T) {
			db := dbtest.OpenWith(t, kind, database.Options{MaxConns: 1})
			exec(t, db, "CREATE TABLE parents (id text PRIMARY KEY)")
			exec(t, db, "CREATE TABLE children (parent text REFERENCES parents (id) DEFERRABLE INITIALLY DEFERRED)")
			for range 3 {
				err := db.InTx(t.Context(), func(tx database.Tx) error {
					if err := tx.Exec(insertEvent, "1", tx.Now).Error; err != nil {
						t.Error(err)
					}
					return tx.Exec("INSERT INTO children VALUES ('nobody')").Error
				})
				if err == nil || errors.Is(err, database.ErrCommitUnknown) {
					t.Fatalf("got %v, want a definite failure", err)
				}
			}
			if n := events(t, db); n != 0 {
				t.Fatalf("%d rows, want 0", n)
			}
			if err := db.InTx(t.Context(), func(tx database.Tx) error { return tx.Exec(insertEvent, "1", tx.Now).Error }); err != nil {
				t.Fatal(err)
			}
		})
	})
}

func TestCommitWhoseSessionDies(t *testing.T) {
	url := dbtest.URL(t, database.Postgres)
	admin := dbtest.Connect(t, url, database.Options{})
	// A trigger that PostgreSQL runs inside COMMIT and that ends its own session: the answer never comes.
	exec(t, admin, `CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END'`)
	exec(t, admin, `CREATE CONSTRAINT TRIGGER die AFTER INSERT ON events DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.id = 'die') EXECUTE FUNCTION die()`)
	insert := func(tx database.Tx, id string) error { return tx.Exec(insertEvent, id, tx.Now).Error }
	atCommit := func(tx database.Tx, id string) error { return tx.AtCommit().Exec(insertEvent, id, tx.Now).Error }

	for _, c := range []struct {
		name    string
		work    func(tx database.Tx) error
		unknown bool // whether it must be unknown; otherwise it may be, or definite
	}{
		{"inside COMMIT is unknown", func(tx database.Tx) error { return insert(tx, "die") }, true},
		{"inside COMMIT, whose batch began the transaction, is unknown", func(tx database.Tx) error { return atCommit(tx, "die") }, true},
		{"before COMMIT is sent, unnoticed", func(tx database.Tx) error {
			return errors.Join(insert(tx, "1"), terminate(tx, admin))
		}, false},
		{"before a statement is sent with COMMIT, unnoticed", func(tx database.Tx) error {
			return errors.Join(insert(tx, "1"), terminate(tx, admin), atCommit(tx, "2"))
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			db := dbtest.Connect(t, url, database.Options{MaxConns: 1})
			err := db.InTx(t.Context(), c.work)
			if unknown := errors.Is(err, database.ErrCommitUnknown); c.unknown && !unknown || !unknown && !errors.Is(err, database.ErrUnavailable) {
				t.Errorf("got %v", err)
			}
			if n := events(t, admin); n != 0 {
				t.Errorf("%d rows, want 0", n)
			}
			// The pool has one connection, which is dead: it must be replaced, not handed out again.
			if err := db.InTx(t.Context(), func(tx database.Tx) error { return errors.Join(insert(tx, "0"), errors.ErrUnsupported) }); !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("the next transaction: %v", err)
			}
		})
	}
}

// terminate ends the session of an open transaction from another one, as an operator does, and waits until it has ended.
func terminate(tx database.Tx, admin *database.DB) error {
	var pid int
	if err := tx.Raw("SELECT pg_backend_pid()").Scan(&pid).Error; err != nil {
		return err
	}
	var ended bool
	err := admin.Read(tx.Statement.Context).Raw("SELECT pg_terminate_backend(?, 10000)", pid).Scan(&ended).Error
	if err == nil && !ended {
		err = errors.New("the session has not ended within 10 s")
	}
	return err
}

func exec(t *testing.T, db *database.DB, statement string) {
	t.Helper()
	if _, err := db.SQL().ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}
