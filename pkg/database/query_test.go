package database_test

import (
	"testing"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
)

// A failure that comes with the rows, after which nothing else is sent, is found out by the COMMIT: it is answered with ROLLBACK.
func TestAQueryThatFailsWhileItIsRead(t *testing.T) {
	db := dbtest.Open(t, database.Postgres)
	err := db.InTx(t.Context(), func(tx database.Tx) error {
		if err := tx.Exec(insertEvent, "before", tx.Now).Error; err != nil {
			return err
		}
		rows, err := tx.Raw("SELECT 1 / (3 - i) FROM generate_series(1, 5) i").Rows()
		if err != nil {
			return err
		}
		for rows.Next() {
		}
		if rows.Err() == nil {
			t.Error("no error")
		}
		return rows.Close()
	})
	if n := events(t, db); err == nil || n != 0 {
		t.Errorf("error %v, %d rows", err, n)
	}
}
