package idempotency

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/einmal/einmal/pkg/database"
)

// identity is what makes an operation one: nothing of another account is ever the same.
type identity struct {
	account string
	key     Key
}

func newOperation(req Request, fingerprint Fingerprint, now time.Time) Operation {
	return Operation{
		AccountID: req.Command.Account, IdempotencyKey: req.Key, ID: NewID("op", now), Type: req.Type,
		// Nobody else ever sees this state: the transaction that claims also ends in the state of its answer.
		State:       Running,
		Fingerprint: fingerprint, Route: req.Command.Method + " " + req.Command.Path,
		Principal: req.Principal, AgentRun: req.AgentRun, RequestID: req.RequestID,
	}
}

// insertClaim inserts the operation row and reports whether it did. It loses to a committed claim; to one that is open in
// another process it loses at once, without waiting, unless it must know how that one ends (wait).
func insertClaim(tx database.Tx, op Operation, wait bool) (won bool, err error) {
	free := tx.LockCondition("claim", op.AccountID, string(op.IdempotencyKey))
	if wait {
		free = clause.Expr{SQL: "true"}
	}
	insert := tx.Exec(`INSERT INTO operations (account_id, idempotency_key, id, type, state, fingerprint, route, principal, agent_run, request_id,
			resource_type, resource_id, resource_href, response_status, response_location, created_at, updated_at)
		SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, '', ?, ?
		WHERE ? ON CONFLICT (account_id, idempotency_key) DO NOTHING`,
		op.AccountID, op.IdempotencyKey, op.ID, op.Type, op.State, op.Fingerprint, op.Route, op.Principal, op.AgentRun, op.RequestID,
		op.Resource.Type, op.Resource.ID, op.Resource.Href, op.CreatedAt, op.UpdatedAt, free)
	err = database.Classify(insert.Error)
	if errors.Is(err, database.ErrBusy) && !wait && !errors.Is(err, context.DeadlineExceeded) {
		// Somebody holds the row without the try-lock: an attempt that looks for its lost COMMIT.
		return false, fmt.Errorf("claim operation: %w: %w", errClaimGone, err)
	}
	if err != nil {
		return false, fmt.Errorf("claim operation: %w", err)
	}
	return insert.RowsAffected == 1, nil
}

// finishClaim writes the answer into the row that this transaction claimed.
func finishClaim(tx database.Tx, op *Operation, answer Answer) error {
	if !claimed.CanBecome(answer.State) {
		return fmt.Errorf("finish claim: an operation can't begin in state %q", answer.State)
	}
	if answer.State.Final() && answer.Status == 0 {
		return fmt.Errorf("finish claim: a final answer needs a status")
	}
	op.take(answer, tx.Now)
	if err := writeAnswer(tx.AtCommit(), *op, Running).Error; err != nil {
		return fmt.Errorf("finish claim: %w", err)
	}
	return nil
}

// writeAnswer writes state and answer of an operation whose row is in one of the states from; its RowsAffected says whether it
// was. Key and id name the same row: with both, PostgreSQL finds it by whichever unique index it takes. On a table without
// statistics, and so in a service's first minute, it takes the other one, and would read all rows of the account.
func writeAnswer(db *gorm.DB, op Operation, from ...State) *gorm.DB {
	return db.Exec(`UPDATE operations SET state = ?, resource_type = ?, resource_id = ?, resource_href = ?,
			response_status = ?, response_location = ?, response_body = ?, updated_at = ?, completed_at = ?
		WHERE account_id = ? AND idempotency_key = ? AND id = ? AND state IN ?`,
		op.State, op.Resource.Type, op.Resource.ID, op.Resource.Href,
		op.ResponseStatus, op.ResponseLocation, op.ResponseBody, op.UpdatedAt, op.CompletedAt,
		op.AccountID, op.IdempotencyKey, op.ID, from)
}

// find reads the operation of an identity. This one row is all of a replay, so its columns are put into place by hand: gorm takes
// twice the processor time to find out where they belong.
func find(db *gorm.DB, id identity) (op Operation, found bool, err error) {
	row := db.Raw(`SELECT account_id, idempotency_key, id, type, state, fingerprint, route, principal, agent_run, request_id,
			resource_type, resource_id, resource_href, response_status, response_location, response_body,
			created_at, updated_at, completed_at, response_expired_at
		FROM operations WHERE account_id = ? AND idempotency_key = ?`, id.account, id.key).Row()
	err = row.Scan(&op.AccountID, &op.IdempotencyKey, &op.ID, &op.Type, &op.State, &op.Fingerprint, &op.Route, &op.Principal, &op.AgentRun, &op.RequestID,
		&op.Resource.Type, &op.Resource.ID, &op.Resource.Href, &op.ResponseStatus, &op.ResponseLocation, &op.ResponseBody,
		&op.CreatedAt, &op.UpdatedAt, &op.CompletedAt, &op.ResponseExpiredAt)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return Operation{}, false, nil
	case err != nil:
		return Operation{}, false, fmt.Errorf("read operation: %w", err)
	}
	return op, true, nil
}
