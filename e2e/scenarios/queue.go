package scenarios

import (
	"fmt"
	"strings"
)

// Queue makes n tickets that are still to be mirrored, by copying the rows of one that was made as usual: thousands made by request would take longer
// than all that is done with them. fsck finds nothing wrong with the copies. The original, which is mirrored as well, is one of the n.
func (p *Part) Queue(n int) {
	replica := p.Replica(p.desk.URL())
	original := p.Mirror(replica)
	p.Succeeds(replica, original)
	p.must(replica.Terminate())

	creation := p.Text("SELECT operation_id FROM tickets WHERE id = $1", original.Ticket)
	suffixed := func(columns ...string) map[string]string {
		set := map[string]string{}
		for _, column := range columns {
			set[column] = column + " || '-' || i"
		}
		return set
	}
	open := suffixed("id", "idempotency_key", "resource_id")
	for column, value := range map[string]string{
		"state": "'queued'", "response_status": "0", "response_location": "''", "response_body": "NULL", "completed_at": "NULL",
	} {
		open[column] = value
	}
	due := suffixed("id", "operation_id", "idempotency_key", "effect_key")
	for column, value := range map[string]string{
		"state": "'queued'", "next_at": "created_at", "fence": "0", "attempts": "0", "asks": "0", "first_sent_at": "NULL", "reference": "''",
	} {
		due[column] = value
	}
	ticket := suffixed("id", "operation_id", "mirror_operation_id")
	ticket["mirror_reference"] = "''"
	p.must(p.db.Change(p.ctx,
		p.copies(n-1, "operations", "id = '"+creation+"'", suffixed("id", "idempotency_key", "resource_id")),
		p.copies(n-1, "operations", "id = '"+original.Operation+"'", open),
		p.copies(n-1, "events", "operation_id = '"+creation+"'", suffixed("id", "operation_id")),
		p.copies(n-1, "events", "operation_id = '"+original.Operation+"' AND type IN ('attempted', 'queued')", suffixed("id", "operation_id")),
		p.MarkToSeal("(SELECT account_id, id FROM events EXCEPT SELECT account_id, event_id FROM leaves EXCEPT SELECT account_id, event_id FROM unsealed) e"),
		p.copies(n-1, "tickets", "id = '"+original.Ticket+"'", ticket),
		p.copies(n-1, "effects", "operation_id = '"+original.Operation+"'", due),
		"ANALYZE", // as autovacuum does within a minute; without statistics PostgreSQL takes thousands of rows for one
	))
}

// copies is a statement that copies rows n times, with some columns set to something else, in which i is the number of the copy.
func (p *Part) copies(n int, table, where string, set map[string]string) string {
	columns, err := p.db.Columns(p.ctx, table)
	p.must(err)
	values := make([]string, len(columns))
	for i, column := range columns {
		values[i] = column
		if value, other := set[column]; other {
			values[i] = value
		}
	}
	return fmt.Sprintf("INSERT INTO %s (%s) WITH RECURSIVE copy(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM copy WHERE i < %d) SELECT %s FROM %s, copy WHERE %s",
		table, strings.Join(columns, ", "), n, strings.Join(values, ", "), table, where)
}
