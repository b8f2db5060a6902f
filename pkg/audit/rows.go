package audit

import (
	"strings"

	"gorm.io/gorm"
)

// The tables that rows are appended to.
var (
	eventsTable = newTable("events", "account_id", "id", "type", "at", "principal", "agent_run", "request_id", "operation_id", "attempt_id",
		"key_hash", "fingerprint", "route", "effect_key", "reference", "from_state", "to_state") // "from" and "to" are words of SQL
	markersTable  = newTable("markers", "events")
	segmentsTable = newTable("segments", "first_index", "first_hash", "events", "hashes")
)

// table inserts rows by statements that are written once: this is on the way of every request, and gorm would look at each field of each row.
type table struct {
	columns    int
	statements [pieces]string // that insert 1, 2, 4 … rows
}

// pieces is how many sizes of statements there are. The largest, of 256 rows, stays with 16 columns far below the databases' limits on parameters, and
// half as many rows in one statement are not measurably slower.
const pieces = 9

func newTable(name string, columns ...string) table {
	t := table{columns: len(columns)}
	row := "(?" + strings.Repeat(", ?", len(columns)-1) + ")"
	for i := range t.statements {
		t.statements[i] = "INSERT INTO " + name + " (" + strings.Join(columns, ", ") + ") VALUES " + row + strings.Repeat(", "+row, 1<<i-1)
	}
	return t
}

// insert writes a number of rows as a few statements of 1, 2, 4 … rows, so that there are few texts of them: every connection
// to PostgreSQL keeps each text that it has prepared, and one for each number of events came to hundreds of megabytes.
func (t table) insert(db *gorm.DB, values []any) error {
	for i := pieces - 1; i >= 0; i-- {
		for n := t.columns << i; len(values) >= n; values = values[n:] {
			if err := db.Exec(t.statements[i], values[:n]...).Error; err != nil {
				return err
			}
		}
	}
	return nil
}
