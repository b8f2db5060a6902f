// Package fsck checks what must always be true across the tables of a service, and between them and the ledger of what is outside. It
// reads one snapshot, so it may run beside traffic, a purge included, and it changes nothing.
package fsck

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/einmal/einmal/pkg/database"
)

// Check is one invariant.
type Check struct {
	Name string

	// SQL returns a row for each violation: the account, and the id of what violates it. It is portable. @past stands for the time before
	// which what was to happen has happened: a minute ago, by the database's clock.
	SQL string

	// Advice says what a violation means and what to do.
	Advice string
}

// Violation is one thing that is not as it must be.
type Violation struct {
	Check   string `json:"check"`
	Account string `json:"account"`
	ID      string `json:"id"`
	Advice  string `json:"advice"`
}

// Run returns every violation of the checks.
func Run(ctx context.Context, db *database.DB, checks ...Check) ([]Violation, error) {
	var violations []Violation
	past := db.Now().Add(-time.Minute) // many looks of a service that runs
	err := db.Snapshot(ctx, func(read *gorm.DB) error {
		for _, check := range checks {
			var rows []struct{ AccountID, ID string }
			query := read.Raw(check.SQL)
			if strings.Contains(check.SQL, "@past") {
				query = read.Raw(check.SQL, sql.Named("past", past))
			}
			if err := query.Scan(&rows).Error; err != nil {
				return fmt.Errorf("check %s: %w", check.Name, err)
			}
			for _, row := range rows {
				violations = append(violations, Violation{Check: check.Name, Account: row.AccountID, ID: row.ID, Advice: check.Advice})
			}
		}
		return nil
	})
	return violations, err
}

// Forgotten is the condition that an operation was forgotten at the end of its retention, after it had succeeded: row is the name of a
// table in the statement, and column the one that has the operation's id. Its event says so; who removes a row by hand writes none.
func Forgotten(row, column string) string {
	return `EXISTS (SELECT 1 FROM events f WHERE f.account_id = ` + row + `.account_id AND f.operation_id = ` + row + `.` + column + `
		AND f.type = 'forgotten' AND f.from_state = 'succeeded')`
}

// Operations are the invariants of the tables that every service has.
var Operations = []Check{
	{
		Name: "a final operation has its answer or is a tombstone",
		SQL: `SELECT account_id, id FROM operations WHERE state IN ('succeeded', 'failed', 'canceled')
			AND (response_status = 0 OR completed_at IS NULL OR (response_body IS NULL AND response_expired_at IS NULL))`,
		Advice: "The operation has ended and can't be replayed. Restore its row from a backup; do not run it again.",
	},
	{
		Name: "an open operation has no answer",
		SQL: `SELECT account_id, id FROM operations WHERE state NOT IN ('succeeded', 'failed', 'canceled')
			AND (response_status <> 0 OR completed_at IS NOT NULL OR response_body IS NOT NULL OR response_expired_at IS NOT NULL)`,
		Advice: "An answer was stored without ending the operation. Find out what wrote it.",
	},
	{
		Name:   "a tombstone keeps no body",
		SQL:    `SELECT account_id, id FROM operations WHERE response_expired_at IS NOT NULL AND response_body IS NOT NULL`,
		Advice: "The retention of the response has passed and its body is still there. Drop it, or withdraw the mark.",
	},
	{
		Name: "every operation has exactly one first event",
		SQL: `SELECT o.account_id, o.id FROM operations o
			WHERE 1 <> (SELECT count(*) FROM events e WHERE e.account_id = o.account_id AND e.operation_id = o.id AND e.type = 'attempted')`,
		Advice: "The claim and its event commit together, so one of them was changed afterwards. Compare with a backup.",
	},
	{
		Name: "every final operation has exactly one final event",
		SQL: `SELECT o.account_id, o.id FROM operations o WHERE o.state IN ('succeeded', 'failed', 'canceled')
			AND 1 <> (SELECT count(*) FROM events e WHERE e.account_id = o.account_id AND e.operation_id = o.id AND e.type IN ('completed', 'canceled'))`,
		Advice: "The answer and its event commit together, so one of them was changed afterwards. Compare with a backup.",
	},
	{
		Name: "no open operation has a final event",
		SQL: `SELECT o.account_id, o.id FROM operations o WHERE o.state NOT IN ('succeeded', 'failed', 'canceled')
			AND EXISTS (SELECT 1 FROM events e WHERE e.account_id = o.account_id AND e.operation_id = o.id AND e.type IN ('completed', 'canceled'))`,
		Advice: "The log says that the operation ended. Its row was changed afterwards; compare with a backup.",
	},
	{
		Name: "every first event has its operation",
		SQL: `SELECT e.account_id, e.id FROM events e WHERE e.type = 'attempted'
			AND NOT EXISTS (SELECT 1 FROM operations o WHERE o.account_id = e.account_id AND o.id = e.operation_id)
			AND NOT EXISTS (SELECT 1 FROM events f WHERE f.account_id = e.account_id AND f.operation_id = e.operation_id AND f.type = 'forgotten')`,
		Advice: "The log tells of an operation that is gone. Its key would be executed again: restore the row from a backup.",
	},
	{
		Name: "what is forgotten had ended, and is gone",
		SQL: `SELECT f.account_id, f.operation_id AS id FROM events f WHERE f.type = 'forgotten'
			AND (f.from_state NOT IN ('succeeded', 'failed', 'canceled')
			  OR NOT EXISTS (SELECT 1 FROM events e WHERE e.account_id = f.account_id AND e.operation_id = f.operation_id AND e.type IN ('completed', 'canceled') AND e.to_state = f.from_state)
			  OR EXISTS (SELECT 1 FROM operations o WHERE o.account_id = f.account_id AND o.id = f.operation_id))`,
		Advice: "A purge took what was open, or somebody has put it back. Its key would be executed again: restore the row from a backup, and stop the purge.",
	},
}

// Effects are the invariants of effects outside, for services that have some.
var Effects = []Check{
	{
		Name: "every effect has its operation",
		SQL: `SELECT e.account_id, e.id FROM effects e
			WHERE NOT EXISTS (SELECT 1 FROM operations o WHERE o.account_id = e.account_id AND o.id = e.operation_id)
			AND NOT (e.idempotency_key = '' AND length(e.command) = 0 AND e.state IN ('succeeded', 'failed', 'canceled') AND EXISTS (SELECT 1 FROM events f
				WHERE f.account_id = e.account_id AND f.operation_id = e.operation_id AND f.type = 'forgotten' AND f.from_state = e.state))`,
		Advice: "An effect is brought to its target for nobody. Find out what removed the operation.",
	},
	{
		Name: "an effect has its operation's key",
		SQL: `SELECT e.account_id, e.id FROM effects e JOIN operations o ON o.account_id = e.account_id AND o.id = e.operation_id
			WHERE e.idempotency_key <> o.idempotency_key`,
		Advice: "It can't be settled, and may be sent under the key of another. They commit together, so one of them was changed afterwards.",
	},
	{
		Name:   "no two effects have one effect key",
		SQL:    `SELECT min(account_id) AS account_id, min(id) AS id FROM effects WHERE idempotency_key <> '' GROUP BY target, effect_key HAVING count(*) > 1`,
		Advice: "The target takes them for one, and answers the second with the first. Find those with this effect key, and compare each with the target.",
	},
	{
		Name: "an operation and its effect end together",
		SQL: `SELECT e.account_id, e.id FROM effects e JOIN operations o ON o.account_id = e.account_id AND o.id = e.operation_id
			WHERE (e.state IN ('succeeded', 'failed', 'canceled') AND o.state <> e.state)
			   OR (e.state NOT IN ('succeeded', 'failed', 'canceled') AND o.state IN ('succeeded', 'failed', 'canceled'))`,
		Advice: "They are settled in one transaction, so one of them was changed afterwards. Compare both with the target.",
	},
	{
		Name: "doubt and state agree",
		SQL: `SELECT account_id, id FROM effects
			WHERE (doubt IS NOT NULL AND (doubt > fence OR first_sent_at IS NULL OR state IN ('awaiting_approval', 'succeeded', 'failed', 'canceled')))
			   OR (doubt IS NULL AND (state = 'unknown' OR (state = 'running' AND accepted_at IS NULL)))`,
		Advice: "Whether a send may still arrive is not known. Treat the effect as unknown and ask the target.",
	},
	{
		Name: "no attempt is left of what is forgotten",
		SQL: `SELECT a.account_id, a.id FROM attempts a JOIN effects e ON e.account_id = a.account_id AND e.operation_id = a.operation_id
			WHERE e.idempotency_key = ''`,
		Advice: "They go together, so one of them was changed afterwards, or something calls for an operation that has ended. Find out which.",
	},
	due,
	{
		Name: "what waits for an approval has an open question",
		SQL: `SELECT e.account_id, e.id FROM effects e WHERE e.state = 'awaiting_approval' AND NOT EXISTS
			(SELECT 1 FROM approvals a WHERE a.account_id = e.account_id AND a.id = e.approval_id AND a.operation_id = e.operation_id
			AND a.state = 'pending' AND a.expires_at = e.approved_until)`,
		Advice: "Nobody is asked about this effect, and it ends never. Cancel its operation.",
	},
	{
		Name: "an open question is about an effect that waits for it",
		SQL: `SELECT a.account_id, a.id FROM approvals a WHERE a.state = 'pending' AND NOT EXISTS
			(SELECT 1 FROM effects e WHERE e.account_id = a.account_id AND e.approval_id = a.id AND e.state = 'awaiting_approval')`,
		Advice: "A person is asked about what has ended. They end in one transaction, so one of them was changed afterwards.",
	},
	{
		Name: "an effect has the approval of its own operation and command",
		SQL: `SELECT a.account_id, a.id FROM approvals a
			LEFT JOIN effects e ON e.account_id = a.account_id AND e.operation_id = a.operation_id AND e.approval_id = a.id
			LEFT JOIN operations o ON o.account_id = a.account_id AND o.id = a.operation_id
				AND o.fingerprint = a.fingerprint AND o.idempotency_key = a.idempotency_key AND o.principal = a.requested_by
			WHERE e.id IS NULL OR (o.id IS NULL AND e.idempotency_key <> '')
			UNION SELECT e.account_id, e.id FROM effects e WHERE e.approval_id <> '' AND NOT EXISTS
				(SELECT 1 FROM approvals a WHERE a.account_id = e.account_id AND a.id = e.approval_id)`,
		Advice: "What a person has agreed to is not what this operation does. Cancel it if it is open; compare with the log and the target.",
	},
	{
		Name: "what needs an approval was sent only while it had one",
		SQL: `SELECT t.account_id, t.id FROM attempts t JOIN effects e ON e.account_id = t.account_id AND e.id = t.effect_id
			WHERE t.kind = 'send' AND e.approval_id <> '' AND NOT EXISTS
			(SELECT 1 FROM approvals a WHERE a.account_id = e.account_id AND a.id = e.approval_id AND a.approved
				AND a.decided_at <= t.started_at AND a.expires_at > t.started_at)`,
		Advice: "A send began that no person had agreed to, or no longer. Tell whoever may decide, and ask the target what has happened.",
	},
	{
		Name:   "nobody has approved what they have asked for",
		SQL:    `SELECT account_id, id FROM approvals WHERE (decided_by <> '' AND decided_by = requested_by) OR (decided_by <> '') <> (decided_at IS NOT NULL) OR (approved AND decided_by = '')`,
		Advice: "The statement that decides refuses it, so something else has written this row. Let another person look at the operation.",
	},
	{
		Name: "what waits for a person has an open review",
		SQL: `SELECT e.account_id, e.id FROM effects e WHERE e.state = 'unknown' AND e.next_at IS NULL
			AND NOT EXISTS (SELECT 1 FROM reviews r WHERE r.account_id = e.account_id AND r.id = e.review_id AND r.state = 'open')`,
		Advice: "Nobody is asked about this effect. Reconcile its operation.",
	},
	{
		Name: "a question how an operation ends is about one that has not",
		SQL: `SELECT r.account_id, r.id FROM reviews r WHERE r.state = 'open' AND r.kind IN ('unknown', 'deadline')
			AND NOT EXISTS (SELECT 1 FROM effects e WHERE e.account_id = r.account_id AND e.operation_id = r.operation_id AND e.state IN ('queued', 'running', 'unknown'))`,
		Advice: "The answer is known: it is the operation's. They are written in one transaction, so one of them was changed afterwards.",
	},
	{
		Name: "what is open past its deadline was noticed, and a person asked",
		SQL: `SELECT e.account_id, e.id FROM effects e
			WHERE (e.overdue_at IS NULL AND e.state IN ('queued', 'running', 'unknown') AND e.deadline IS NOT NULL AND e.deadline < @past)
			   OR (e.overdue_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM reviews r WHERE r.account_id = e.account_id AND r.operation_id = e.operation_id AND r.kind = 'deadline'))`,
		Advice: "A service that runs and serves this target ends it or asks within seconds. Start one, or find out what keeps it from that.",
	},
}

// EffectsInTurn are Effects for a service in which operations wait for one another. What waits for its turn is not due; that it has one
// is for the service to check.
var EffectsInTurn = func() []Check {
	inTurn := slices.Clone(Effects)
	for i, check := range inTurn {
		if check.Name == due.Name {
			inTurn[i].Name = "an open effect is due, held, waits for its turn, or is with a person"
			inTurn[i].SQL += ` AND NOT (state = 'queued' AND first_sent_at IS NULL AND cancel_asked_at IS NULL)`
		}
	}
	return inTurn
}()

var due = Check{
	Name:   "an open effect is due, held, or with a person",
	SQL:    `SELECT account_id, id FROM effects WHERE state IN ('queued', 'running', 'unknown') AND next_at IS NULL AND review_id = ''`,
	Advice: "Nothing will take this effect any more. Reconcile its operation.",
}
