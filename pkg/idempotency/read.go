package idempotency

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/einmal/einmal/pkg/database"
)

var (
	// ErrNotFound means that the account has no such operation. What other accounts have does not exist.
	ErrNotFound = errors.New("operation not found")

	// ErrForgotten means that nothing is known of a key, and that this says nothing: it tells a time longer ago than keys are
	// remembered.
	ErrForgotten = errors.New("key is older than keys are remembered")
)

// ByKey reads the operation that a key names. ErrNotFound means that no attempt with this key has committed, or one so long ago that
// the key is forgotten; for a key that tells its age the latter is ErrForgotten.
func (x *Executor) ByKey(ctx context.Context, account string, key Key) (Operation, error) {
	op, found, err := find(x.db.Read(ctx), identity{account, key})
	switch {
	case err != nil:
		return Operation{}, database.Classify(err)
	case found:
		return x.shown(ctx, op)
	}
	switch forgotten, err := x.forgotten(ctx, key); {
	case err != nil:
		return Operation{}, err
	case forgotten:
		return Operation{}, ErrForgotten
	}
	return Operation{}, ErrNotFound
}

// ByID reads one operation.
func (x *Executor) ByID(ctx context.Context, account, id string) (Operation, error) {
	op, err := byID(x.db.Read(ctx), account, id)
	if err != nil {
		return Operation{}, database.Classify(err)
	}
	return x.shown(ctx, op)
}

// Row reads the row of one operation inside a transaction, without what Options.Describe adds.
func (x *Executor) Row(tx database.Tx, account, id string) (Operation, error) {
	return byID(tx.DB, account, id)
}

// RowByKey is Row for whoever knows the key: the primary key finds the row however new the table is (see writeAnswer).
func (x *Executor) RowByKey(tx database.Tx, account string, key Key) (Operation, error) {
	op, found, err := find(tx.DB, identity{account, key})
	if err == nil && !found {
		err = ErrNotFound
	}
	return op, err
}

func byID(db *gorm.DB, account, id string) (Operation, error) {
	var rows []Operation
	err := db.Where("account_id = ? AND id = ?", account, id).Limit(1).Find(&rows).Error
	switch {
	case err != nil:
		return Operation{}, fmt.Errorf("read operation: %w", err)
	case len(rows) == 0:
		return Operation{}, ErrNotFound
	}
	return rows[0], nil
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
	return rows, x.show(ctx, rows)
}

func (x *Executor) shown(ctx context.Context, op Operation) (Operation, error) {
	one := []Operation{op}
	err := x.show(ctx, one)
	return one[0], err
}

// show makes operations of one account what callers see of them: with what is known of their effects, and without an answer that
// is past its retention, whether or not it was dropped. When it was dropped is nobody's business: it had ended before.
func (x *Executor) show(ctx context.Context, ops []Operation) error {
	for i := range ops {
		if !ops[i].expired(x.db.Now(), x.options.ResponseRetention) {
			continue
		}
		end := ops[i].CompletedAt.Add(x.options.ResponseRetention)
		if ops[i].ResponseExpiredAt == nil || end.Before(*ops[i].ResponseExpiredAt) {
			ops[i].ResponseExpiredAt = &end
		}
		ops[i].ResponseBody = nil
	}
	return x.options.Describe(ctx, ops)
}

// youngKey is the age up to which nobody asks whether a key was forgotten, since asking costs two reads, and most keys are used the
// moment they are made. What was used within the hour is remembered: a replica with settings that forget it sooner asks sooner, and no
// replica with other settings belongs beside it.
const youngKey = time.Hour

// old reports whether a key tells a time so long ago that it may have been forgotten.
func (x *Executor) old(key Key) bool {
	made, tells := key.madeAt()
	return tells && made.Before(x.db.Now().Add(-min(youngKey, x.horizon())))
}

// horizon is how long a key is remembered after its operation has ended.
func (x *Executor) horizon() time.Duration {
	return x.options.ResponseRetention + x.options.TombstoneRetention
}

// forgotten reports whether a key of which nothing is known may have been used: it tells a time longer ago than keys are remembered, or
// than some were forgotten.
func (x *Executor) forgotten(ctx context.Context, key Key) (bool, error) {
	made, tells := key.madeAt()
	if !tells || made.Before(x.db.Now().Add(-x.horizon())) {
		return tells, nil
	}
	until, err := x.options.Forgotten(ctx)
	return !made.After(until), err
}
