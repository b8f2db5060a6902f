package idempotency

import (
	"context"
	"errors"
	"fmt"

	"github.com/einmal/einmal/pkg/database"
)

// ErrNotFound means that the account has no such operation. What other accounts have does not exist.
var ErrNotFound = errors.New("operation not found")

// ByKey reads the operation that a key names. ErrNotFound means that no attempt with this key has committed.
func (x *Executor) ByKey(ctx context.Context, account string, key Key) (Operation, error) {
	op, found, err := find(x.db.Read(ctx), identity{account, key})
	if err == nil && !found {
		err = ErrNotFound
	}
	return x.told(op), database.Classify(err)
}

// ByID reads one operation.
func (x *Executor) ByID(ctx context.Context, account, id string) (Operation, error) {
	var rows []Operation
	err := x.db.Read(ctx).Where("account_id = ? AND id = ?", account, id).Limit(1).Find(&rows).Error
	switch {
	case err != nil:
		return Operation{}, database.Classify(fmt.Errorf("read operation: %w", err))
	case len(rows) == 0:
		return Operation{}, ErrNotFound
	}
	return x.told(rows[0]), nil
}

// List reads up to limit operations of an account, newest first, that are older than the operation named before (empty: all).
func (x *Executor) List(ctx context.Context, account, before string, limit int) ([]Operation, error) {
	query := x.db.Read(ctx).Where("account_id = ?", account)
	if before != "" {
		query = query.Where("id < ?", before)
	}
	var rows []Operation
	if err := query.Order("id DESC").Limit(limit).Find(&rows).Error; err != nil {
		return nil, database.Classify(fmt.Errorf("list operations: %w", err))
	}
	for i := range rows {
		rows[i] = x.told(rows[i])
	}
	return rows, nil
}

// told is an operation as it is shown: what is past its retention is not given any more, whether or not it was dropped.
func (x *Executor) told(op Operation) Operation {
	if op.expired(x.db.Now(), x.options.ResponseRetention) && op.ResponseExpiredAt == nil {
		end := op.CompletedAt.Add(x.options.ResponseRetention)
		op.ResponseExpiredAt, op.ResponseBody = &end, nil
	}
	return op
}
