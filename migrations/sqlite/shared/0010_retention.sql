-- +goose Up

-- What still has its answer, in the order in which it came. Neither column changes when an operation ends, so that its update stays as
-- cheap as without this index.
CREATE INDEX operations_to_expire ON operations (created_at, account_id, idempotency_key) WHERE response_expired_at IS NULL;

-- Tombstones, in the order in which they became that.
CREATE INDEX operations_to_forget ON operations (response_expired_at, account_id, idempotency_key) WHERE response_expired_at IS NOT NULL;

-- Of every key that was ever forgotten here, the time that stands in it, if it tells one, is this or earlier; null: none was.
ALTER TABLE installation ADD COLUMN forgotten_until datetime;

-- +goose Down
ALTER TABLE installation DROP COLUMN forgotten_until;
DROP INDEX operations_to_forget;
DROP INDEX operations_to_expire;
