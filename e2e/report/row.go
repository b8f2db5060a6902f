package report

import (
	"fmt"
	"iter"
	"time"

	"github.com/einmal/einmal/e2e/record"
)

// row is one row of a table, by the names of its columns.
type row map[string]any

// rowsOf are the rows of a table that were read.
func rowsOf(d record.Database, table string) iter.Seq[row] {
	return func(yield func(row) bool) {
		for _, t := range d.Tables {
			if t.Name != table {
				continue
			}
			for _, values := range t.Rows {
				r := row{}
				for i, column := range t.Columns {
					r[column] = values[i]
				}
				if !yield(r) {
					return
				}
			}
		}
	}
}

func (r row) text(column string) string {
	if r[column] == nil {
		return ""
	}
	return fmt.Sprint(r[column])
}

// time is a time by our clock, of a database whose clock is behind it by so much. It is zero if there is none.
func (r row) time(column string, behind time.Duration) time.Time {
	at, known := r[column].(time.Time)
	if !known || at.IsZero() {
		return time.Time{}
	}
	if behind.Abs() < slack {
		return at // the difference is how long it takes to ask
	}
	return at.Add(behind)
}
