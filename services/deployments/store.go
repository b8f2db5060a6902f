package deployments

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/einmal/einmal/pkg/catalogue"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

var (
	// errNotFound: the account has no such deployment, environment or release.
	errNotFound = errors.New("not found")

	// errNotHolder: the deployment does not hold its environment, and must not be sent.
	errNotHolder = errors.New("deployment does not hold its environment")
)

// store reads and writes deployments, environments and releases.
type store struct {
	db *database.DB
}

// row is a row of deployments.
type row struct {
	AccountID        string `gorm:"primaryKey"`
	ID               string `gorm:"primaryKey"`
	OperationID      string
	Kind             Kind
	RollbackOf       string
	Service          string
	Environment      string
	Artifact         string
	ExpectedVersion  *int64
	Arrival          int64
	Queues           bool
	Waiting          bool
	FencingToken     int64
	StopOperationID  string
	ReportedArtifact string
	Reason           string
	Replaced         string
	CreatedAt        time.Time `gorm:"autoCreateTime:false"`
	StartedAt        *time.Time
	FinishedAt       *time.Time

	State         string `gorm:"->"` // of the effect; read only
	Asked         bool   `gorm:"->"`
	QueuePosition int64  `gorm:"->"`
}

func (row) TableName() string { return "deployments" }

// insert writes a new deployment.
func (s store) insert(tx database.Tx, d Deployment) error {
	err := tx.AtCommit().Create(&row{
		AccountID: d.AccountID, ID: d.ID, OperationID: d.OperationID, Kind: d.Kind, RollbackOf: d.RollbackOf, Service: d.Service,
		Environment: d.Environment, Artifact: d.Artifact, ExpectedVersion: d.ExpectedVersion, Arrival: d.Arrival, Queues: d.Queues, Waiting: d.Waiting,
		CreatedAt: d.CreatedAt,
	}).Error
	if err != nil {
		return fmt.Errorf("insert deployment: %w", err)
	}
	return nil
}

// arrives notes that a deployment comes to its environment only now, and whether it waits there.
func (s store) arrives(tx database.Tx, d Deployment) error {
	return s.change(tx, "note arrival", "arrival = ?, waiting = ?", d, d.Arrival, d.Waiting)
}

// drawn notes the token that a deployment is about to be sent under.
func (s store) drawn(tx database.Tx, d Deployment, token int64) error {
	return s.change(tx, "note token", "fencing_token = ?, started_at = coalesce(started_at, ?)", d, token, tx.Now)
}

// reported notes what the cluster says runs.
func (s store) reported(tx database.Tx, d Deployment, artifact, reason string) error {
	return s.change(tx, "note report", "reported_artifact = ?, reason = ?", d, artifact, reason)
}

// stops notes which operation breaks a deployment off.
func (s store) stops(tx database.Tx, d Deployment, operationID string) error {
	return s.change(tx, "note stop", "stop_operation_id = ?", d, operationID)
}

// finish notes the end of a deployment.
func (s store) finish(tx database.Tx, d Deployment) error {
	return s.change(tx, "finish deployment", "waiting = ?, reason = ?, replaced = ?, finished_at = ?", d, false, d.Reason, d.Replaced, tx.Now)
}

func (s store) change(tx database.Tx, what, set string, d Deployment, args ...any) error {
	update := tx.Exec("UPDATE deployments SET "+set+" WHERE account_id = ? AND id = ?", append(args, d.AccountID, d.ID)...)
	switch {
	case update.Error != nil:
		return fmt.Errorf("%s: %w", what, update.Error)
	case update.RowsAffected != 1:
		return fmt.Errorf("%s: deployment %s: %w", what, d.ID, errNotFound)
	}
	return nil
}

// byID reads one deployment, or errNotFound.
func (s store) byID(db *gorm.DB, account, id string) (Deployment, error) {
	return one(db.Where("account_id = ? AND id = ?", account, id))
}

// byOperation reads the deployment that an operation brings to its environment.
func (s store) byOperation(db *gorm.DB, account, operationID string) (Deployment, error) {
	return one(db.Where("account_id = ? AND operation_id = ?", account, operationID))
}

// byStop reads the deployment that an operation breaks off, or was to, before another one has taken its place.
func (s store) byStop(db *gorm.DB, account, operationID string) (Deployment, error) {
	return one(db.Where(`account_id = ? AND id = (SELECT o.resource_id FROM operations o WHERE o.account_id = ? AND o.id = ? AND o.type = ?)`,
		account, account, operationID, catalogue.DeploymentCancel))
}

// firstWaiting reads the deployment that has waited longest for an environment of those that came after an arrival, or errNotFound.
func (s store) firstWaiting(tx database.Tx, account, environment string, after int64) (Deployment, error) {
	return one(waiting(tx.DB, account, environment).Where("arrival > ?", after))
}

// waiting are the deployments that wait for an environment, the first first.
func waiting(db *gorm.DB, account, environment string) *gorm.DB {
	return db.Where("account_id = ? AND environment = ? AND waiting", account, environment).Order("arrival")
}

// filter is what a list is restricted to; empty fields restrict nothing.
type filter struct {
	environment, service string
	state                idempotency.State
}

// list reads up to limit deployments, newest first, that are older than the one named before (empty: all).
func (s store) list(ctx context.Context, account string, f filter, before string, limit int) ([]Deployment, error) {
	query := s.db.Read(ctx).Where("account_id = ?", account)
	if f.environment != "" {
		query = query.Where("environment = ?", f.environment)
	}
	if f.service != "" {
		query = query.Where("service = ?", f.service)
	}
	if f.state != "" {
		query = query.Where(stateOfEffect+" = ?", f.state)
	}
	if before != "" {
		query = query.Where("id < ?", before)
	}
	return read(query.Order("id DESC").Limit(limit))
}

// stateOfEffect is the state of a deployment: a subquery, not a join, which leaves the columns in conditions without a table's name.
const stateOfEffect = `(SELECT e.state FROM effects e WHERE e.account_id = deployments.account_id AND e.operation_id = deployments.operation_id)`

// columns are those of a row, by name: with * a migration beside us breaks statements that are prepared.
const columns = `account_id, id, operation_id, kind, rollback_of, service, environment, artifact, expected_version, arrival, queues, waiting, fencing_token,
	stop_operation_id, reported_artifact, reason, replaced, created_at, started_at, finished_at, coalesce(` + stateOfEffect + `, '') AS state,
	EXISTS (SELECT 1 FROM effects e WHERE e.account_id = deployments.account_id AND e.operation_id = deployments.operation_id AND e.approval_id <> '') AS asked,
	CASE WHEN waiting THEN (SELECT count(*) FROM deployments q WHERE q.account_id = deployments.account_id
		AND q.environment = deployments.environment AND q.waiting AND q.arrival <= deployments.arrival) ELSE 0 END AS queue_position`

func one(query *gorm.DB) (Deployment, error) {
	found, err := read(query.Limit(1))
	if err != nil {
		return Deployment{}, err
	}
	if len(found) == 0 {
		return Deployment{}, errNotFound
	}
	return found[0], nil
}

func read(query *gorm.DB) ([]Deployment, error) {
	var rows []row
	if err := query.Select(columns).Find(&rows).Error; err != nil {
		return nil, database.Classify(fmt.Errorf("read deployments: %w", err))
	}
	deployments := make([]Deployment, len(rows))
	for i, r := range rows {
		deployments[i] = Deployment{
			AccountID: r.AccountID, ID: r.ID, OperationID: r.OperationID, Kind: r.Kind, RollbackOf: r.RollbackOf, Service: r.Service,
			Environment: r.Environment, Artifact: r.Artifact, State: idempotency.State(r.State), Reason: r.Reason, ExpectedVersion: r.ExpectedVersion,
			Arrival: r.Arrival, Queues: r.Queues, Waiting: r.Waiting, Asked: r.Asked, QueuePosition: r.QueuePosition, FencingToken: r.FencingToken, StopOperationID: r.StopOperationID,
			ReportedArtifact: r.ReportedArtifact, Replaced: r.Replaced, CreatedAt: r.CreatedAt, StartedAt: r.StartedAt, FinishedAt: r.FinishedAt,
		}
	}
	return deployments, nil
}
