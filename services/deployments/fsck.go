package deployments

import (
	"slices"

	"github.com/einmal/einmal/pkg/fsck"
)

// Checks are what must always be true of the database of the service.
func Checks() []fsck.Check { return slices.Concat(fsck.Operations, fsck.EffectsInTurn, checks) }

// Ledger is how rollouts and stops stand in the ledger of a cluster.
var Ledger = fsck.Ledger{
	Target: "cluster", Begun: []string{"rollout"},
	SQL: `SELECT e.account_id, e.id, e.operation_id, e.effect_key, e.reference, e.state, CASE e.target WHEN 'cluster' THEN 'rollout' ELSE 'stop' END AS kind, -1 AS amount_minor,
		coalesce(d.artifact, s.artifact, '') AS artifact
		FROM effects e
		LEFT JOIN deployments d ON d.account_id = e.account_id AND d.operation_id = e.operation_id
		LEFT JOIN deployments s ON s.account_id = e.account_id AND s.stop_operation_id = e.operation_id AND s.stop_operation_id <> ''`,
}

// open are the states in which a rollout is not over, and underWay those in which it holds its environment or waits for it: while a
// person is asked it does neither.
const (
	open     = `('awaiting_approval', 'queued', 'running', 'unknown')`
	underWay = `('queued', 'running', 'unknown')`

	// maybeForgotten is the condition of one that waited for a person when its database was set back: it holds nothing, and its cluster is
	// asked what has become of it in the time that is forgotten.
	maybeForgotten = `(e.state = 'unknown' AND e.attempts = 0 AND e.approval_id <> '' AND d.fencing_token = 0)`
)

// checks are the invariants of deployments, their environments, and the operations that make and break off both.
var checks = []fsck.Check{
	{
		Name: "no local operation is open",
		SQL: `SELECT account_id, id FROM operations WHERE type NOT IN ('deployment.create', 'deployment.rollback', 'deployment.cancel')
			AND state NOT IN ('succeeded', 'failed')`,
		Advice: "All but rollouts and stops ends in the transaction that claims it. Something else has written this row.",
	},
	{
		Name: "an operation that brings a release out has its deployment and its effect",
		SQL: `SELECT o.account_id, o.id FROM operations o WHERE o.type IN ('deployment.create', 'deployment.rollback')
			AND (o.state <> 'failed' OR EXISTS (SELECT 1 FROM effects e WHERE e.account_id = o.account_id AND e.operation_id = o.id))
			AND (NOT EXISTS (SELECT 1 FROM deployments d WHERE d.account_id = o.account_id AND d.operation_id = o.id AND d.id = o.resource_id)
			  OR NOT EXISTS (SELECT 1 FROM effects e WHERE e.account_id = o.account_id AND e.operation_id = o.id))`,
		Advice: "They commit with the operation, so one of them was changed afterwards. Compare with a backup and with the cluster.",
	},
	{
		Name: "every deployment was made by an operation that brings a release out",
		SQL: `SELECT d.account_id, d.id FROM deployments d WHERE NOT EXISTS (SELECT 1 FROM operations o JOIN effects e
				ON e.account_id = o.account_id AND e.operation_id = o.id
			WHERE o.account_id = d.account_id AND o.id = d.operation_id AND o.type IN ('deployment.create', 'deployment.rollback'))
			AND NOT EXISTS (SELECT 1 FROM effects e WHERE e.account_id = d.account_id AND e.operation_id = d.operation_id
				AND e.type IN ('deployment.create', 'deployment.rollback') AND e.idempotency_key = '')`,
		Advice: "Nobody was told of this deployment. Find out what wrote it.",
	},
	{
		Name: "a deployment is finished when its rollout has ended",
		SQL: `SELECT d.account_id, d.id FROM deployments d JOIN effects e ON e.account_id = d.account_id AND e.operation_id = d.operation_id
			WHERE (d.finished_at IS NULL AND e.state NOT IN ` + open + `) OR (d.finished_at IS NOT NULL AND e.state IN ` + open + `)`,
		Advice: "They are settled in one transaction, so one of them was changed afterwards. Compare both with the cluster.",
	},
	{
		Name: "a lock is held by a deployment that is not over",
		SQL: `SELECT v.account_id, v.name AS id FROM environments v WHERE v.holder <> '' AND NOT EXISTS
			(SELECT 1 FROM deployments d JOIN effects e ON e.account_id = d.account_id AND e.operation_id = d.operation_id
			WHERE d.account_id = v.account_id AND d.id = v.holder AND d.environment = v.name AND NOT d.waiting AND e.state IN ` + underWay + `)`,
		Advice: "Nobody will leave this lock. Ask the cluster what runs in the environment before anything is changed by hand.",
	},
	{
		Name: "a deployment that is under way holds its environment or waits for it",
		SQL: `SELECT d.account_id, d.id FROM deployments d JOIN effects e ON e.account_id = d.account_id AND e.operation_id = d.operation_id
			JOIN environments v ON v.account_id = d.account_id AND v.name = d.environment
			WHERE (e.state IN ` + underWay + ` AND NOT d.waiting AND v.holder <> d.id AND NOT ` + maybeForgotten + `) OR (e.state NOT IN ` + underWay + ` AND d.waiting)`,
		Advice: "This rollout is not kept apart from others. Ask the cluster what runs in the environment, and cancel it.",
	},
	{
		Name: "one rollout goes on in an environment",
		SQL: `SELECT d.account_id, min(d.id) AS id FROM deployments d JOIN effects e ON e.account_id = d.account_id AND e.operation_id = d.operation_id
			WHERE e.state IN ('running', 'unknown') AND NOT ` + maybeForgotten + ` GROUP BY d.account_id, d.environment HAVING count(*) > 1`,
		Advice: "Two rollouts may overlap. Ask the cluster about both.",
	},
	{
		Name: "whoever waits for an environment waits for somebody, and was never sent",
		SQL: `SELECT d.account_id, d.id FROM deployments d JOIN effects e ON e.account_id = d.account_id AND e.operation_id = d.operation_id
			JOIN environments v ON v.account_id = d.account_id AND v.name = d.environment
			WHERE d.waiting AND (v.holder = '' OR v.holder = d.id OR d.fencing_token <> 0 OR e.next_at IS NOT NULL)`,
		Advice: "Its turn never comes, or it has come twice. Cancel it.",
	},
	{
		Name: "a rollout that is not due waits for its environment",
		SQL: `SELECT d.account_id, d.id FROM deployments d JOIN effects e ON e.account_id = d.account_id AND e.operation_id = d.operation_id
			WHERE e.state = 'queued' AND e.next_at IS NULL AND NOT d.waiting`,
		Advice: "It has the lock and is never sent. Cancel it.",
	},
	{
		Name: "tokens only rise",
		SQL: `SELECT d.account_id, d.id FROM deployments d JOIN environments v ON v.account_id = d.account_id AND v.name = d.environment
			WHERE d.fencing_token > v.token OR v.floor > v.token
			OR EXISTS (SELECT 1 FROM deployments l WHERE l.account_id = d.account_id AND l.environment = d.environment
				AND l.started_at > d.finished_at AND l.fencing_token <> 0 AND l.fencing_token <= d.fencing_token)`,
		Advice: "A token was drawn twice, or the environment was set back. The cluster still refuses what is below its floor; find out what changed the row.",
	},
	{
		Name: "what is live is the last deployment of its service that succeeded",
		SQL: `SELECT r.account_id, r.deployment_id AS id FROM releases r WHERE NOT EXISTS
			(SELECT 1 FROM deployments d JOIN effects e ON e.account_id = d.account_id AND e.operation_id = d.operation_id
			WHERE d.account_id = r.account_id AND d.id = r.deployment_id AND d.environment = r.environment AND d.service = r.service
			AND d.artifact = r.artifact AND e.state = 'succeeded' AND NOT EXISTS
				(SELECT 1 FROM deployments l JOIN effects le ON le.account_id = l.account_id AND le.operation_id = l.operation_id
				WHERE l.account_id = d.account_id AND l.environment = d.environment AND l.service = d.service AND le.state = 'succeeded' AND l.arrival > d.arrival))`,
		Advice: "What is told to be live is not what was brought out last. Ask the cluster what runs.",
	},
	{
		Name: "a cancelation that is accepted has its effect and the deployment that it breaks off",
		SQL: `SELECT o.account_id, o.id FROM operations o WHERE o.type = 'deployment.cancel'
			AND EXISTS (SELECT 1 FROM effects e WHERE e.account_id = o.account_id AND e.operation_id = o.id)
				<> EXISTS (SELECT 1 FROM events v WHERE v.account_id = o.account_id AND v.operation_id = o.id AND v.type = 'queued' AND v.from_state = '')`,
		Advice: "They commit with the operation, so one of them was changed afterwards. Compare with the cluster.",
	},
}
