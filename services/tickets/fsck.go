package tickets

import (
	"context"
	"slices"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/fsck"
)

// Fsck checks the database of the service.
func Fsck(ctx context.Context, db *database.DB) ([]fsck.Violation, error) {
	return fsck.Run(ctx, db, slices.Concat(fsck.Operations, fsck.Effects, checks)...)
}

// checks are the invariants of tickets, the operations that create them and those that mirror them. No index leads from an operation to its tickets (each
// creation would pay for it), so what needs that way reads all tickets once, not once for each operation.
var checks = []fsck.Check{
	{
		Name:   "no local operation is open",
		SQL:    `SELECT account_id, id FROM operations WHERE type <> 'ticket.mirror' AND state NOT IN ('succeeded', 'failed')`,
		Advice: "All but mirroring ends in the transaction that claims it. Something else has written this row.",
	},
	{
		Name: "a creation that made a ticket has exactly that one",
		SQL: `SELECT o.account_id, o.id FROM operations o
			LEFT JOIN (SELECT account_id, operation_id, count(*) AS tickets, min(id) AS id FROM tickets GROUP BY account_id, operation_id) made
				ON made.account_id = o.account_id AND made.operation_id = o.id
			WHERE o.type = 'ticket.create' AND o.state = 'succeeded' AND o.response_status = 201
			AND (made.tickets IS NULL OR made.tickets <> 1 OR made.id <> o.resource_id)`,
		Advice: "The caller was told of one ticket. None: restore it from a backup. Several, or another: close all but the one in the response.",
	},
	{
		Name: "a creation that found a ticket made none",
		SQL: `SELECT o.account_id, o.id FROM operations o WHERE o.type = 'ticket.create' AND o.state = 'succeeded' AND o.response_status <> 201
			AND ((o.account_id, o.id) IN (SELECT account_id, operation_id FROM tickets)
			  OR NOT EXISTS (SELECT 1 FROM tickets t WHERE t.account_id = o.account_id AND t.id = o.resource_id AND t.source_event_id IS NOT NULL))`,
		Advice: "The caller was told that the ticket existed. Compare it with the response.",
	},
	{
		Name: "every ticket was made by a creation that succeeded",
		SQL: `SELECT t.account_id, t.id FROM tickets t
			WHERE NOT EXISTS (SELECT 1 FROM operations o WHERE o.account_id = t.account_id AND o.id = t.operation_id
				AND o.type = 'ticket.create' AND o.state = 'succeeded' AND o.response_status = 201)`,
		Advice: "Nobody was told of this ticket, and a retry would make a second. Find out what wrote it, then close it.",
	},
	{
		Name: "an event has one ticket in a project",
		SQL: `SELECT account_id, min(id) AS id FROM tickets WHERE source_event_id IS NOT NULL
			GROUP BY account_id, project, source_event_id HAVING count(*) > 1`,
		Advice: "The unique index tickets_source_event is missing or damaged. Rebuild it after closing all but one of these tickets.",
	},
	{
		Name: "a mirror has its ticket and its effect",
		SQL: `SELECT o.account_id, o.id FROM operations o WHERE o.type = 'ticket.mirror'
			AND (NOT EXISTS (SELECT 1 FROM tickets t WHERE t.account_id = o.account_id AND t.id = o.resource_id AND t.mirror_operation_id = o.id)
			  OR NOT EXISTS (SELECT 1 FROM effects e WHERE e.account_id = o.account_id AND e.operation_id = o.id))`,
		Advice: "They commit with the ticket's creation, so one of them was changed afterwards. Compare with a backup and with the desk.",
	},
	{
		Name: "a mirrored ticket has the mirror that it names",
		SQL: `SELECT t.account_id, t.id FROM tickets t WHERE t.mirror_operation_id <> '' AND NOT EXISTS
			(SELECT 1 FROM operations o WHERE o.account_id = t.account_id AND o.id = t.mirror_operation_id AND o.type = 'ticket.mirror' AND o.resource_id = t.id)`,
		Advice: "Nothing brings this ticket to the desk, or something brings another. Compare with a backup and with the desk.",
	},
	{
		Name: "a ticket and its mirror know the desk's ticket by the same name",
		SQL: `SELECT t.account_id, t.id FROM tickets t
			LEFT JOIN effects e ON e.account_id = t.account_id AND e.operation_id = t.mirror_operation_id AND t.mirror_operation_id <> ''
			WHERE t.mirror_reference <> CASE WHEN e.state = 'succeeded' THEN e.reference ELSE '' END`,
		Advice: "The name is noted in the transaction that ends the mirror, so one of them was changed afterwards. Ask the desk.",
	},
}
