package payments

import (
	"slices"

	"github.com/einmal/einmal/pkg/fsck"
)

// Checks are what must always be true of the database of the service.
func Checks() []fsck.Check { return slices.Concat(fsck.Operations, fsck.Effects, checks) }

// Ledger is how effects stand in the ledger of a payment provider. What a capture or cancel was about is known while its operation is.
var Ledger = fsck.Ledger{
	Target: "psp", Undo: "void",
	SQL: `SELECT e.account_id, e.id, e.operation_id, e.effect_key, CASE e.reference WHEN '' THEN coalesce(b.reference, '') ELSE e.reference END AS reference, e.state, '' AS artifact,
		CASE e.target WHEN 'psp_authorize' THEN 'authorize' WHEN 'psp_capture' THEN 'capture' WHEN 'psp_cancel' THEN 'void' ELSE 'refund' END AS kind,
		coalesce(p.amount_minor, r.amount_minor, CASE e.target WHEN 'psp_capture' THEN b.captured_minor ELSE b.amount_minor END, -1) AS amount_minor
		FROM effects e
		LEFT JOIN payments p ON p.account_id = e.account_id AND p.operation_id = e.operation_id
		LEFT JOIN refunds r ON r.account_id = e.account_id AND r.operation_id = e.operation_id
		LEFT JOIN operations o ON o.account_id = e.account_id AND o.id = e.operation_id AND o.type IN ('payment.capture', 'payment.cancel')
		LEFT JOIN payments b ON b.account_id = o.account_id AND b.id = o.resource_id`,
}

// authorizings are the operations that authorize payments; of those that are forgotten, what their effects tell.
const authorizings = `(SELECT account_id, id, state, resource_id FROM operations WHERE type = 'payment.create'
	UNION ALL SELECT account_id, operation_id, state, '' FROM effects WHERE type = 'payment.create' AND idempotency_key = '')`

// succeeded are the operations of a type that have succeeded, by what they were about; of those that are forgotten, what the log tells.
func succeeded(operationType, route string) string {
	return `SELECT account_id, resource_id FROM operations WHERE type = '` + operationType + `' AND state = 'succeeded'
		UNION ALL SELECT account_id, reference FROM events WHERE type = 'forgotten' AND from_state = 'succeeded' AND route LIKE 'POST /v1/payments/%/` + route + `'`
}

// checks are the invariants of orders, payments and refunds. No index leads from a payment to what was done with it, so what needs that
// way reads all operations once, not once for each payment.
var checks = []fsck.Check{
	{
		Name: "no local operation is open",
		SQL: `SELECT account_id, id FROM operations WHERE type NOT IN ('payment.create', 'payment.capture', 'payment.cancel', 'refund.create')
			AND state NOT IN ('succeeded', 'failed')`,
		Advice: "What has no effect outside ends in the transaction that claims it. Something else has written this row.",
	},
	{
		Name: "what moves money has its effect",
		SQL: `SELECT o.account_id, o.id FROM operations o WHERE o.type IN ('payment.create', 'payment.capture', 'payment.cancel', 'refund.create')
			AND (o.state NOT IN ('failed') OR o.resource_id <> '')
			AND NOT EXISTS (SELECT 1 FROM effects e WHERE e.account_id = o.account_id AND e.operation_id = o.id)`,
		Advice: "They commit together, so one of them was changed afterwards. Compare with a backup and with the provider.",
	},
	{
		Name: "an order has one live payment at most",
		SQL: `SELECT account_id, min(id) AS id FROM payments WHERE state NOT IN ('failed', 'canceled')
			GROUP BY account_id, order_id HAVING count(*) > 1`,
		Advice: "The unique index payments_live is missing or damaged, and an order may be paid twice. Compare its payments with the provider, refund one, and rebuild the index.",
	},
	{
		Name: "a payment says what its order says",
		SQL: `SELECT p.account_id, p.id FROM payments p LEFT JOIN orders o ON o.account_id = p.account_id AND o.id = p.order_id
			WHERE o.id IS NULL OR NOT o.frozen OR o.amount_minor <> p.amount_minor OR o.currency <> p.currency`,
		Advice: "An order that is being paid can't change, so one of them was changed afterwards. The provider knows what was authorized.",
	},
	{
		Name: "a payment and its authorising agree",
		SQL: `SELECT p.account_id, p.id FROM payments p
			LEFT JOIN ` + authorizings + ` o ON o.account_id = p.account_id AND o.id = p.operation_id AND o.resource_id IN (p.id, '')
			WHERE o.id IS NULL
			   OR (p.state = 'pending') <> (o.state NOT IN ('succeeded', 'failed', 'canceled'))
			   OR (p.state IN ('authorized', 'captured') AND o.state <> 'succeeded')
			   OR (p.state = 'failed' AND o.state <> 'failed')`,
		Advice: "They are settled in one transaction, so one of them was changed afterwards. Compare both with the provider.",
	},
	{
		Name: "every authorising has its payment",
		SQL: `SELECT o.account_id, o.id FROM operations o WHERE o.type = 'payment.create' AND o.resource_id <> ''
			AND NOT EXISTS (SELECT 1 FROM payments p WHERE p.account_id = o.account_id AND p.id = o.resource_id AND p.operation_id = o.id)`,
		Advice: "The payment is gone, and its order would take another. Restore it from a backup.",
	},
	{
		Name: "what is under way at a payment is a capture or cancel of it",
		SQL: `SELECT p.account_id, p.id FROM payments p
			LEFT JOIN operations o ON o.account_id = p.account_id AND o.id = p.open_operation_id
			WHERE p.open_operation_id <> '' AND (p.state <> 'authorized' OR o.id IS NULL OR o.type NOT IN ('payment.capture', 'payment.cancel')
				OR o.resource_id <> p.id OR o.state IN ('succeeded', 'failed', 'canceled'))`,
		Advice: "The payment waits for something that has ended, or is not there. Ask the provider, then correct the row.",
	},
	{
		Name: "every open capture or cancel holds its payment",
		SQL: `SELECT o.account_id, o.id FROM operations o WHERE o.type IN ('payment.capture', 'payment.cancel') AND o.state NOT IN ('succeeded', 'failed', 'canceled')
			AND NOT EXISTS (SELECT 1 FROM payments p WHERE p.account_id = o.account_id AND p.id = o.resource_id AND p.open_operation_id = o.id)`,
		Advice: "Another capture or cancel could be sent beside this one. Reconcile it before anything else is done with the payment.",
	},
	{
		Name: "a payment is captured by one capture, with what it asked for",
		SQL: `SELECT p.account_id, p.id FROM payments p
			LEFT JOIN (SELECT account_id, resource_id, count(*) AS captures FROM (` + succeeded("payment.capture", "capture") + `) all_of_them
				GROUP BY account_id, resource_id) done ON done.account_id = p.account_id AND done.resource_id = p.id
			WHERE coalesce(done.captures, 0) <> CASE WHEN p.state = 'captured' THEN 1 ELSE 0 END
			   OR (p.state = 'captured') <> (p.captured_minor > 0)`,
		Advice: "They are settled in one transaction, so one of them was changed afterwards. The provider knows what was captured.",
	},
	{
		Name: "a payment is canceled by a cancel, or was never authorized",
		SQL: `SELECT p.account_id, p.id FROM payments p
			JOIN ` + authorizings + ` o ON o.account_id = p.account_id AND o.id = p.operation_id
			LEFT JOIN (SELECT account_id, resource_id, count(*) AS cancels FROM (` + succeeded("payment.cancel", "cancel") + `) all_of_them
				GROUP BY account_id, resource_id) done ON done.account_id = p.account_id AND done.resource_id = p.id
			WHERE coalesce(done.cancels, 0) <> CASE WHEN p.state = 'canceled' AND o.state = 'succeeded' THEN 1 ELSE 0 END`,
		Advice: "They are settled in one transaction, so one of them was changed afterwards. The provider knows whether the money is held.",
	},
	{
		Name: "no more is captured than was authorized, nor refunded than was captured",
		SQL: `SELECT account_id, id FROM payments WHERE captured_minor < 0 OR captured_minor > amount_minor
			OR refund_reserved_minor < 0 OR refunded_minor < 0 OR refund_reserved_minor + refunded_minor > captured_minor`,
		Advice: "A constraint of the table payments is missing. Compare the payment with the provider, then correct the row and restore the constraint.",
	},
	{
		Name: "reservations are those of open refunds, and refunded is what is done",
		SQL: `SELECT p.account_id, p.id FROM payments p
			LEFT JOIN (SELECT r.account_id, r.payment_id,
					sum(CASE WHEN o.state NOT IN ('succeeded', 'failed', 'canceled') THEN r.amount_minor ELSE 0 END) AS reserved,
					sum(CASE WHEN o.state = 'succeeded' THEN r.amount_minor ELSE 0 END) AS refunded,
					max(r.number) AS last
				FROM refunds r JOIN effects o ON o.account_id = r.account_id AND o.operation_id = r.operation_id
				GROUP BY r.account_id, r.payment_id) made ON made.account_id = p.account_id AND made.payment_id = p.id
			WHERE p.refund_reserved_minor <> coalesce(made.reserved, 0) OR p.refunded_minor <> coalesce(made.refunded, 0) OR p.refunds <> coalesce(made.last, 0)`,
		Advice: "More could be refunded than is left, or less. Compare the payment's refunds with the provider, then correct the row.",
	},
	{
		Name: "every refund has its operation and its payment",
		SQL: `SELECT r.account_id, r.id FROM refunds r
			LEFT JOIN operations o ON o.account_id = r.account_id AND o.id = r.operation_id AND o.type = 'refund.create' AND o.resource_id = r.id
			LEFT JOIN payments p ON p.account_id = r.account_id AND p.id = r.payment_id AND p.currency = r.currency
			WHERE (o.id IS NULL AND NOT EXISTS (SELECT 1 FROM effects e WHERE e.account_id = r.account_id AND e.operation_id = r.operation_id
				AND e.type = 'refund.create' AND e.idempotency_key = '')) OR p.id IS NULL`,
		Advice: "Nobody asked for this refund, or it is of nothing. Compare it with the provider.",
	},
	{
		Name: "every refund that was accepted is there",
		SQL: `SELECT o.account_id, o.id FROM operations o WHERE o.type = 'refund.create' AND o.resource_id <> ''
			AND NOT EXISTS (SELECT 1 FROM refunds r WHERE r.account_id = o.account_id AND r.id = o.resource_id AND r.operation_id = o.id)`,
		Advice: "What it takes is not reserved any more. Restore it from a backup.",
	},
}
