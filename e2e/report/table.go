package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/einmal/einmal/e2e/record"
)

// rowsShown is how many rows of a table are in the report: it is there to be read.
const rowsShown = 12

// Table is some rows of a table.
type Table struct {
	Name    string
	Total   int
	Err     string
	Columns []string
	Rows    [][]Cell
	More    int // rows that are not shown
}

// Cell is one value. Full is there where Text is shorter.
type Cell struct{ Text, Full string }

// told are the columns of the tables that every service has, as they are shown. Of the others, all that say something are.
var told = map[string][]string{
	"operations": {"id", "type", "state", "idempotency_key", "principal", "response_status", "created_at", "completed_at"},
	"effects":    {"operation_id", "target", "effect_key", "state", "fence", "doubt", "attempts", "asks", "reference", "review_id"},
	"attempts":   {"operation_id", "kind", "fence", "started_at", "ended_at", "outcome", "error", "reference"},
	"reviews":    {"id", "kind", "operation_id", "state", "opened_at", "evidence"},
}

// order puts the tables of operations first, and then those of the domain.
var order = []string{"operations", "effects", "attempts", "reviews"}

func (s *story) tables() (all []Table) {
	for _, d := range s.Databases {
		if d.Err != "" {
			all = append(all, Table{Name: d.Name, Err: d.Err})
		}
		tables := slices.Clone(d.Tables)
		slices.SortStableFunc(tables, func(a, b record.Table) int { return rankOf(a.Name) - rankOf(b.Name) })
		for _, t := range tables {
			all = append(all, s.tableOf(t, d.Behind))
		}
	}
	return all
}

func rankOf(table string) int {
	if i := slices.Index(order, table); i >= 0 {
		return i
	}
	return len(order)
}

func (s *story) tableOf(t record.Table, behind time.Duration) Table {
	rows := t.Rows[:min(len(t.Rows), rowsShown)]
	table := Table{Name: t.Name, Total: t.Total, More: t.Total - len(rows)}
	var columns []int
	for _, name := range told[t.Name] {
		if i := slices.Index(t.Columns, name); i >= 0 {
			columns = append(columns, i)
		}
	}
	if told[t.Name] == nil {
		columns = tellingColumns(t, rows)
	}
	for _, i := range columns {
		table.Columns = append(table.Columns, strings.ReplaceAll(strings.TrimSuffix(t.Columns[i], "_at"), "_", " "))
	}
	for _, values := range rows {
		var cells []Cell
		for _, i := range columns {
			cells = append(cells, s.cellOf(values[i], behind))
		}
		table.Rows = append(table.Rows, cells)
	}
	return table
}

// tellingColumns are those in which not all values are missing, or empty, or zero.
func tellingColumns(t record.Table, rows [][]any) (columns []int) {
	const most = 9 // a table that can be read
	for i := range t.Columns {
		if len(columns) < most && slices.ContainsFunc(rows, func(row []any) bool {
			text := fmt.Sprint(row[i])
			return row[i] != nil && text != "" && text != "0" && text != "{}" && text != "false"
		}) {
			columns = append(columns, i)
		}
	}
	return columns
}

func (s *story) cellOf(value any, behind time.Duration) Cell {
	switch v := value.(type) {
	case nil:
		return Cell{Text: "–"}
	case time.Time:
		if len(s.steps) == 0 {
			return Cell{Text: v.UTC().Format(time.RFC3339Nano)}
		}
		at := row{"at": v}.time("at", behind)
		return Cell{Text: fmt.Sprintf("%+.3f s", at.Sub(s.steps[0].at).Seconds()), Full: v.UTC().Format(time.RFC3339Nano)}
	case string:
		return cellOfText(v)
	}
	return Cell{Text: fmt.Sprint(value)}
}

func cellOfText(text string) Cell {
	full := text
	var evidence []struct{ Source, Says string }
	if strings.HasPrefix(text, "[") && json.Unmarshal([]byte(text), &evidence) == nil && len(evidence) > 0 {
		last := evidence[len(evidence)-1]
		return Cell{Text: last.Source + ": " + last.Says, Full: full}
	}
	if text = shorten(text); text == full {
		full = ""
	}
	return Cell{Text: cmp.Or(text, "–"), Full: full}
}
