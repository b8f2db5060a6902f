package tickets

import (
	"slices"

	"github.com/einmal/einmal/pkg/fsck"
)

// Checks are what must always be true of the database of the service.
func Checks() []fsck.Check { return slices.Concat(fsck.Operations, fsck.Effects, checks) }

// Ledger is how mirrors stand in the ledger of a desk.
var Ledger = fsck.Ledger{
	Target: "desk",
	SQL:    `SELECT account_id, id, operation_id, effect_key, reference, 'ticket' AS kind, state, 0 AS amount_minor, '' AS artifact FROM effects`,
}

// checks are the invariants of tickets and comments, the operations that make and change them and those that mirror them. No index leads from an operation to its tickets (each
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
				AND o.type = 'ticket.create' AND o.state = 'succeeded' AND o.response_status = 201) AND NOT ` + fsck.Forgotten("t", "operation_id"),
		Advice: "Nobody was told of this ticket, and a retry would make a second. Find out what wrote it, then close it.",
	},
	{
		Name: "an event has one ticket in a project",
		SQL: `SELECT account_id, min(id) AS id FROM tickets WHERE source_event_id IS NOT NULL
			GROUP BY account_id, project, source_event_id HAVING count(*) > 1`,
		Advice: "The unique index tickets_source_event is missing or damaged. Rebuild it after closing all but one of these tickets.",
	},
	{
		Name:   "a ticket is closed exactly while it has a time at which it was",
		SQL:    `SELECT account_id, id FROM tickets WHERE (status = 'closed') <> (closed_at IS NOT NULL)`,
		Advice: "Both are written by the command that sets the status, so one of them was changed afterwards. Compare with a backup.",
	},
	{
		Name: "a ticket's status was changed by operations only",
		SQL: `SELECT t.account_id, t.id FROM tickets t
			LEFT JOIN (SELECT account_id, resource_id, count(*) AS sets FROM operations
				WHERE type = 'ticket.set_status' AND state = 'succeeded' GROUP BY account_id, resource_id) asked
				ON asked.account_id = t.account_id AND asked.resource_id = t.id
			LEFT JOIN (SELECT account_id, reference, count(*) AS sets FROM events
				WHERE type = 'forgotten' AND from_state = 'succeeded' AND route <> 'POST /v1/tickets' GROUP BY account_id, reference) forgotten
				ON forgotten.account_id = t.account_id AND forgotten.reference = t.id
			WHERE t.version < 1 OR t.version - 1 > coalesce(asked.sets, 0) + coalesce(forgotten.sets, 0) OR (t.version = 1 AND t.status <> 'open')`,
		Advice: "It has changed more often than anybody was told. Find out what wrote it, and set the status that is right.",
	},
	{
		Name: "an operation that added a comment has exactly that one",
		SQL: `SELECT o.account_id, o.id FROM operations o
			LEFT JOIN (SELECT account_id, operation_id, count(*) AS comments, min(id) AS id FROM comments GROUP BY account_id, operation_id) made
				ON made.account_id = o.account_id AND made.operation_id = o.id
			WHERE o.type = 'ticket.comment' AND o.state = 'succeeded' AND (made.comments IS NULL OR made.comments <> 1 OR made.id <> o.resource_id)`,
		Advice: "The caller was told of one comment. None: restore it from a backup. Several, or another: remove all but the one in the response.",
	},
	{
		Name: "every comment was made by an operation that succeeded, about a ticket that there is",
		SQL: `SELECT c.account_id, c.id FROM comments c
			WHERE NOT EXISTS (SELECT 1 FROM operations o WHERE o.account_id = c.account_id AND o.id = c.operation_id
				AND o.type = 'ticket.comment' AND o.state = 'succeeded') AND NOT ` + fsck.Forgotten("c", "operation_id") + `
			OR NOT EXISTS (SELECT 1 FROM tickets t WHERE t.account_id = c.account_id AND t.id = c.ticket_id)`,
		Advice: "Nobody was told of this comment, or nobody can find it. Find out what wrote it, or what removed its ticket.",
	},
	{
		Name: "a ticket counts its comments",
		SQL: `SELECT t.account_id, t.id FROM tickets t
			LEFT JOIN (SELECT account_id, ticket_id, count(*) AS comments FROM comments GROUP BY account_id, ticket_id) c
				ON c.account_id = t.account_id AND c.ticket_id = t.id
			WHERE t.comment_count <> coalesce(c.comments, 0)`,
		Advice: "A comment and its count commit together, so one of them was changed afterwards. Count again once it is known which.",
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
			(SELECT 1 FROM operations o WHERE o.account_id = t.account_id AND o.id = t.mirror_operation_id AND o.type = 'ticket.mirror' AND o.resource_id = t.id)
			AND NOT EXISTS (SELECT 1 FROM effects e WHERE e.account_id = t.account_id AND e.operation_id = t.mirror_operation_id AND e.type = 'ticket.mirror' AND e.idempotency_key = '')`,
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
