package servertest

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// kind is what something is told in.
type kind string

const (
	inLog     kind = "log"
	inEvent   kind = "event"
	inProblem kind = "problem"
)

// place is a text that a service has told, and where.
type place struct {
	kind       kind
	name, text string
}

// logged is what lines of JSON say.
func logged(lines string) (all []place) {
	for line := range strings.Lines(lines) {
		var members map[string]any
		if err := json.Unmarshal([]byte(line), &members); err != nil {
			all = append(all, place{inLog, "a log line that is no JSON", line})
		}
		walk("", members, func(pointer, text string) {
			all = append(all, place{inLog, fmt.Sprintf("the log line %q, in %s,", members["msg"], pointer), text})
		})
	}
	return all
}

// problemOf is what a problem document says.
func problemOf(document []byte) (all []place) {
	var members any
	if json.Unmarshal(document, &members) != nil {
		return []place{{inProblem, "a problem that is no JSON", string(document)}}
	}
	walk("", members, func(pointer, text string) {
		all = append(all, place{inProblem, "the problem, in " + pointer + ",", text})
	})
	return all
}

// eventsOf is what the events of a database say, column by column.
func eventsOf(ctx context.Context, db *sql.DB) (all []place, err error) {
	rows, err := db.QueryContext(ctx, "SELECT * FROM events")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	values := make([]sql.NullString, len(columns))
	into := make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		for i, column := range columns {
			all = append(all, place{inEvent, "the event column " + column, values[i].String})
		}
	}
	return all, rows.Err()
}

// walk visits what is decoded JSON, each text with the pointer to it.
func walk(pointer string, value any, visit func(pointer, text string)) {
	switch v := value.(type) {
	case map[string]any:
		for _, member := range slices.Sorted(maps.Keys(v)) {
			walk(pointer+"/"+member, v[member], visit)
		}
	case []any:
		for i, element := range v {
			walk(fmt.Sprintf("%s/%d", pointer, i), element, visit)
		}
	case string:
		visit(pointer, v)
	}
}
