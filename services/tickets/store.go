package tickets

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

var (
	// errNotFound: the account has no such ticket.
	errNotFound = errors.New("ticket not found")

	// errMoved: the ticket is at another version than the one that was read.
	errMoved = errors.New("ticket moved meanwhile")
)

// store reads and writes tickets.
type store struct {
	db *database.DB
}

// row is a row of tickets.
type row struct {
	AccountID     string `gorm:"primaryKey"`
	ID            string `gorm:"primaryKey"`
	Project       string
	Title         string
	Description   string
	Priority      Priority
	Labels        string // a JSON object
	SourceEventID *string
	Status        Status
	Version       int64
	CommentCount  int64
	OperationID   string
	CreatedAt     time.Time `gorm:"autoCreateTime:false"`
	UpdatedAt     time.Time `gorm:"autoUpdateTime:false"`
	ClosedAt      *time.Time

	MirrorOperationID string // empty: not mirrored
	MirrorReference   string // of the ticket at the desk, once that is known
	MirrorState       string `gorm:"->"` // of the effect; read only
}

func (row) TableName() string { return "tickets" }

// insert writes a new ticket and reports whether it did: not if its source event has one in the project. It waits for an open
// transaction that is about to insert the same event, at most for the lock time-out.
func (s store) insert(tx database.Tx, t Ticket) (inserted bool, err error) {
	labels, err := json.Marshal(t.Labels, json.Deterministic(true))
	if err != nil {
		return false, fmt.Errorf("insert ticket: %w", err)
	}
	r := &row{
		AccountID: t.AccountID, ID: t.ID, Project: t.Project, Title: t.Title, Description: t.Description, Priority: t.Priority,
		Labels: string(labels), SourceEventID: t.SourceEventID, Status: t.Status, Version: t.Version, CommentCount: t.CommentCount,
		OperationID: t.OperationID, CreatedAt: t.CreatedAt, UpdatedAt: t.UpdatedAt, ClosedAt: t.ClosedAt,
	}
	if t.SourceEventID == nil { // nothing to meet, so nobody waits to hear of it
		if err := tx.AtCommit().Create(r).Error; err != nil {
			return false, fmt.Errorf("insert ticket: %w", err)
		}
		return true, nil
	}
	insert := tx.Clauses(onSourceEvent).Create(r)
	if insert.Error != nil {
		return false, fmt.Errorf("insert ticket: %w", insert.Error)
	}
	return insert.RowsAffected == 1, nil
}

// noteMirror notes which operation mirrors a ticket that this transaction has inserted.
func (s store) noteMirror(tx database.Tx, t Ticket, operationID string) error {
	err := tx.AtCommit().Exec("UPDATE tickets SET mirror_operation_id = ? WHERE account_id = ? AND id = ?", operationID, t.AccountID, t.ID).Error
	if err != nil {
		return fmt.Errorf("note mirror: %w", err)
	}
	return nil
}

// noteReference notes what the desk calls a ticket.
func (s store) noteReference(tx database.Tx, account, mirrorOperationID, reference string) error {
	update := tx.Exec("UPDATE tickets SET mirror_reference = ? WHERE account_id = ? AND "+isMirror, reference, account, mirrorOperationID)
	switch {
	case update.Error != nil:
		return fmt.Errorf("note reference: %w", update.Error)
	case update.RowsAffected != 1:
		return fmt.Errorf("note reference: operation %s mirrors %d tickets", mirrorOperationID, update.RowsAffected)
	}
	return nil
}

// writeStatus writes the status of a ticket that was read at a version, or returns errMoved. It waits for an open transaction that is about to
// move it too, at most for the lock time-out.
func (s store) writeStatus(tx database.Tx, readAt int64, t Ticket) error {
	update := tx.Exec("UPDATE tickets SET status = ?, version = ?, updated_at = ?, closed_at = ? WHERE account_id = ? AND id = ? AND version = ?",
		t.Status, t.Version, t.UpdatedAt, t.ClosedAt, t.AccountID, t.ID, readAt)
	switch {
	case update.Error != nil:
		return fmt.Errorf("move ticket: %w", update.Error)
	case update.RowsAffected == 0:
		return errMoved
	}
	return nil
}

// onSourceEvent names the one index whose violation is an answer; any other is an error.
var onSourceEvent = clause.OnConflict{
	Columns:     []clause.Column{{Name: "account_id"}, {Name: "project"}, {Name: "source_event_id"}},
	TargetWhere: clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "source_event_id IS NOT NULL"}}},
	DoNothing:   true,
}

// bySourceEvent reads the ticket of an event, inside the transaction that has just met it.
func (s store) bySourceEvent(tx database.Tx, account, project, sourceEventID string) (Ticket, error) {
	return one(tx.Where("account_id = ? AND project = ? AND source_event_id = ?", account, project, sourceEventID))
}

// byMirror reads the ticket that an operation mirrors, inside the transaction that settles it.
func (s store) byMirror(tx database.Tx, account, operationID string) (Ticket, error) {
	return one(tx.Where("account_id = ? AND "+isMirror, account, operationID))
}

// isMirror says what the index says as well: without that a database which does not know the parameter can't use it.
const isMirror = "mirror_operation_id = ? AND mirror_operation_id <> ''"

// byID reads one ticket, or errNotFound.
func (s store) byID(ctx context.Context, account, id string) (Ticket, error) {
	return one(s.db.Read(ctx).Where("account_id = ? AND id = ?", account, id))
}

// byIDIn reads one ticket, or errNotFound, inside the transaction that is about to change it.
func (s store) byIDIn(tx database.Tx, account, id string) (Ticket, error) {
	return one(tx.Where("account_id = ? AND id = ?", account, id))
}

// filter is what a list is restricted to; empty fields restrict nothing.
type filter struct {
	project, sourceEventID string
	status                 Status
}

// list reads up to limit tickets, newest first, that are older than the one named before (empty: all).
func (s store) list(ctx context.Context, account string, f filter, before string, limit int) ([]Ticket, error) {
	query := s.db.Read(ctx).Where("account_id = ?", account)
	if f.project != "" {
		query = query.Where("project = ?", f.project)
	}
	if f.status != "" {
		query = query.Where("status = ?", f.status)
	}
	if f.sourceEventID != "" {
		query = query.Where("source_event_id = ?", f.sourceEventID)
	}
	if before != "" {
		query = query.Where("id < ?", before)
	}
	return read(query.Order("id DESC").Limit(limit))
}

// columns are those of a row, by name: with * a migration beside us breaks statements that are prepared. The state of the mirror is a
// subquery, not a join, which leaves the columns in the caller's conditions without a table's name.
const columns = `account_id, id, project, title, description, priority, labels, source_event_id, status, version, comment_count, operation_id,
	created_at, updated_at, closed_at, mirror_operation_id, mirror_reference, coalesce((SELECT e.state FROM effects e
		WHERE e.account_id = tickets.account_id AND e.operation_id = tickets.mirror_operation_id), '') AS mirror_state`

func one(query *gorm.DB) (Ticket, error) {
	found, err := read(query.Limit(1))
	if err != nil {
		return Ticket{}, err
	}
	if len(found) == 0 {
		return Ticket{}, errNotFound
	}
	return found[0], nil
}

func read(query *gorm.DB) ([]Ticket, error) {
	var rows []row
	query = query.Select(columns)
	if err := query.Find(&rows).Error; err != nil {
		return nil, database.Classify(fmt.Errorf("read tickets: %w", err))
	}
	tickets := make([]Ticket, len(rows))
	for i, r := range rows {
		tickets[i] = Ticket{
			AccountID: r.AccountID, ID: r.ID, Project: r.Project, Title: r.Title, Description: r.Description, Priority: r.Priority,
			SourceEventID: r.SourceEventID, Status: r.Status, Version: r.Version, CommentCount: r.CommentCount,
			OperationID: r.OperationID, CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt, ClosedAt: r.ClosedAt,
		}
		if r.MirrorOperationID != "" {
			tickets[i].Mirror = &Mirror{OperationID: r.MirrorOperationID, State: idempotency.State(r.MirrorState), Reference: r.MirrorReference}
		}
		if err := json.Unmarshal([]byte(r.Labels), &tickets[i].Labels); err != nil {
			return nil, fmt.Errorf("read tickets: labels of %s: %w", r.ID, err)
		}
	}
	return tickets, nil
}
