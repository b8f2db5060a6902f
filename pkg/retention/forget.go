package retention

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

// gone is what is told of an operation whose tombstone was removed.
type gone struct {
	ID             string
	IdempotencyKey idempotency.Key
	State          idempotency.State
	Fingerprint    idempotency.Fingerprint
	Route          string
	ResourceID     string
	CreatedAt      time.Time
}

const (
	// listTombstones reads what is due, by operations_to_forget.
	listTombstones = `SELECT account_id, idempotency_key, response_expired_at AS at FROM operations
		WHERE response_expired_at IS NOT NULL AND response_expired_at < ? AND (response_expired_at, account_id, idempotency_key) > (?, ?, ?)
		ORDER BY response_expired_at, account_id, idempotency_key LIMIT ?`

	// removeTombstones goes by the primary key.
	removeTombstones = `DELETE FROM operations WHERE account_id = ? AND idempotency_key IN ? AND response_expired_at < ? AND state IN ` + ended + `
		AND NOT EXISTS (SELECT 1 FROM reviews r WHERE r.account_id = operations.account_id AND r.operation_id = operations.id AND r.state = 'open')
		RETURNING id, idempotency_key, state, fingerprint, route, resource_id, created_at`
)

// forget removes the tombstones that are past their retention, unless a person is still asked about their operation, or one that follows
// it is still known.
func (p *Purger) forget(ctx context.Context) (int64, error) {
	until := p.DB.Now().Add(-p.Tombstone - Skew(p.Tombstone))
	list := func(read *gorm.DB, after row) *gorm.DB {
		return read.Raw(listTombstones, until, after.At, after.AccountID, after.IdempotencyKey, listed)
	}
	return p.sweep(ctx, list, func(tx database.Tx, account string, keys []string) (int64, error) {
		keys, err := p.unfollowed(tx, account, keys)
		if err != nil || len(keys) == 0 {
			return 0, err
		}
		var removed []gone
		err = tx.Raw(removeTombstones, account, padded(keys), until).Scan(&removed).Error
		if err != nil {
			return 0, fmt.Errorf("remove tombstones: %w", err)
		}
		return int64(len(removed)), p.clear(tx, account, removed)
	})
}

// unfollowed leaves out the keys of operations that another one follows which is known: until that is forgotten, nobody could tell
// what had been done for whom.
func (p *Purger) unfollowed(tx database.Tx, account string, keys []string) ([]string, error) {
	if p.Following == nil {
		return keys, nil
	}
	following := make([]string, len(keys))
	for i, key := range keys {
		following[i] = string(p.Following(idempotency.Key(key)))
	}
	var known []string
	err := tx.Table("operations").Where("account_id = ? AND idempotency_key IN ?", account, padded(following[:len(following):len(following)])).
		Pluck("idempotency_key", &known).Error
	if err != nil {
		return nil, fmt.Errorf("look for following operations: %w", err)
	}
	held := map[string]bool{}
	for _, key := range known {
		held[key] = true
	}
	var free []string
	for i, key := range keys {
		if !held[following[i]] {
			free = append(free, key)
		}
	}
	return free, nil
}

// clear removes what nobody needs without the operations, says in the log that they are gone, and notes up to when keys are forgotten.
func (p *Purger) clear(tx database.Tx, account string, removed []gone) error {
	if len(removed) == 0 {
		return nil
	}
	ids, events, until := make([]string, len(removed)), make([]idempotency.Event, len(removed)), time.Time{}
	for i, op := range removed {
		ids[i] = op.ID
		events[i] = idempotency.Event{
			Type: idempotency.Forgotten, At: tx.Now, Account: account, Principal: "retention", OperationID: op.ID,
			KeyHash: op.IdempotencyKey.Hash(), Fingerprint: op.Fingerprint, Route: op.Route, Reference: op.ResourceID, From: op.State,
		}
		if op.CreatedAt.After(until) {
			until = op.CreatedAt
		}
	}
	ids = padded(ids)
	at := tx.AtCommit()
	if err := at.Exec("DELETE FROM attempts WHERE account_id = ? AND operation_id IN ?", account, ids).Error; err != nil {
		return fmt.Errorf("remove attempts: %w", err)
	}
	if err := at.Exec("UPDATE effects SET idempotency_key = '', command = ? WHERE account_id = ? AND operation_id IN ?", []byte{}, account, ids).Error; err != nil {
		return fmt.Errorf("clear effects: %w", err)
	}
	if err := mark(tx, until.Add(Skew(p.Tombstone))); err != nil {
		return err
	}
	return p.Record(tx, events...)
}
