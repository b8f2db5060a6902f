package harness

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/einmal/einmal/e2e/record"
)

// rowsMost is how many rows of a table are read for a recording: all of them, except where a scenario has a queue of thousands.
const rowsMost = 4000

// unread are columns that hold whole bodies.
var unread = []string{"response_body", "command"}

// ofTheLog are the tables that the audit is in.
var ofTheLog = []string{"events", "markers", "unsealed", "segments", "leaves", "audit_tree", "audit_checkpoints"}

// RecordRows notes what is in every database of the laboratory. What can't be read is noted as such: it may be what the scenario broke.
func (l *Lab) RecordRows(ctx context.Context) {
	l.mu.Lock()
	databases := slices.Clone(l.databases)
	l.mu.Unlock()
	for _, d := range databases {
		recorded := record.Database{Name: string(l.Kind)}
		if err := d.readInto(ctx, &recorded); err != nil {
			recorded.Err = err.Error()
		}
		record.From(ctx).Database(recorded)
	}
}

func (d *Database) readInto(ctx context.Context, into *record.Database) error {
	list := "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
	if d.Path == "" {
		list = "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema() ORDER BY table_name"
		var now time.Time
		if err := d.pool.QueryRowContext(ctx, "SELECT clock_timestamp()").Scan(&now); err != nil {
			return fmt.Errorf("read the clock: %w", err)
		}
		into.Behind = time.Since(now)
	}
	names, err := d.texts(ctx, list)
	if err != nil {
		return fmt.Errorf("list tables: %w", err)
	}
	for _, name := range names {
		if strings.HasPrefix(name, "schema_") || slices.Contains(ofTheLog, name) { // of migrations; of the audit, which tells the same at greater length
			continue
		}
		table, err := d.table(ctx, name)
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		into.Tables = append(into.Tables, table)
	}
	return nil
}

func (d *Database) table(ctx context.Context, name string) (record.Table, error) {
	table := record.Table{Name: name}
	columns, err := d.Columns(ctx, name)
	if err != nil {
		return table, err
	}
	table.Columns = slices.DeleteFunc(columns, func(c string) bool { return slices.Contains(unread, c) })
	if table.Total, err = d.Count(ctx, "SELECT count(*) FROM "+name); err != nil {
		return table, err
	}
	query := "SELECT " + strings.Join(table.Columns, ", ") + " FROM " + name
	if slices.Contains(table.Columns, "id") {
		query += " ORDER BY id" // which rise with time
	}
	rows, err := d.pool.QueryContext(ctx, fmt.Sprintf("%s LIMIT %d", query, rowsMost))
	if err != nil {
		return table, err
	}
	defer rows.Close()
	for rows.Next() {
		row := make([]any, len(table.Columns))
		into := make([]any, len(row))
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			return table, err
		}
		for i, value := range row {
			if bytes, ok := value.([]byte); ok {
				row[i] = string(bytes)
			}
		}
		table.Rows = append(table.Rows, row)
	}
	return table, rows.Err()
}

func (d *Database) texts(ctx context.Context, query string) (texts []string, err error) {
	rows, err := d.pool.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	return texts, rows.Err()
}
