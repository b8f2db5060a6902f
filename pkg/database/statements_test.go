package database_test

import (
	"fmt"
	"testing"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
)

// A connection that keeps what it has parsed must do nothing else than one that parses anew.
func TestAStatementThatIsRunAgain(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		inTx := func(t *testing.T, db *database.DB, fn func(tx database.Tx) error) {
			t.Helper()
			if err := db.InTx(t.Context(), fn); err != nil {
				t.Fatal(err)
			}
		}
		t.Run("sees the columns that there are by now", func(t *testing.T) {
			db := dbtest.Open(t, kind)
			exec(t, db, "CREATE TABLE things (id text)")
			for _, change := range []string{"INSERT INTO things VALUES ('1')", "ALTER TABLE things ADD COLUMN size integer NOT NULL DEFAULT 7", "DROP TABLE things", "CREATE TABLE things (size integer, id text)"} {
				exec(t, db, change)
				if change == "DROP TABLE things" {
					continue
				}
				inTx(t, db, func(tx database.Tx) error {
					var id string
					return tx.Raw("SELECT coalesce(min(id), '') FROM things").Scan(&id).Error
				})
				inTx(t, db, func(tx database.Tx) error { return tx.Exec("DELETE FROM things WHERE id = ?", "2").Error })
			}
		})
		if kind == database.Postgres {
			return // which reads one result after the other
		}
		t.Run("while its rows are read has rows of its own", func(t *testing.T) {
			db := dbtest.Open(t, kind)
			exec(t, db, "CREATE TABLE things (id text)")
			exec(t, db, "INSERT INTO things VALUES ('1'), ('2'), ('3')")
			const query = "SELECT id FROM things ORDER BY id"
			for range 2 { // what it does with a statement that is new, and with one that it knows
				inTx(t, db, func(tx database.Tx) error {
					outer, err := tx.Raw(query).Rows()
					if err != nil {
						return err
					}
					defer outer.Close()
					var pairs string
					for len(pairs) < 100 && outer.Next() {
						var id string
						if err := outer.Scan(&id); err != nil {
							return err
						}
						var inner []string
						if err := tx.Raw(query).Scan(&inner).Error; err != nil {
							return err
						}
						pairs += fmt.Sprint(id, inner)
					}
					if want := "1[1 2 3]2[1 2 3]3[1 2 3]"; pairs != want {
						t.Errorf("read %s, want %s", pairs, want)
					}
					return outer.Err()
				})
			}
		})
		t.Run("may be one of any number", func(t *testing.T) {
			db := dbtest.Open(t, kind)
			for range 2 {
				inTx(t, db, func(tx database.Tx) error {
					for i := range 600 {
						var n int
						if err := tx.Raw(fmt.Sprintf("SELECT %d", i)).Scan(&n).Error; err != nil || n != i {
							return fmt.Errorf("%d: %d, %w", i, n, err)
						}
					}
					return nil
				})
			}
		})
	})
}
