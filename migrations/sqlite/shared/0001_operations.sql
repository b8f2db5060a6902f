-- +goose Up

-- One row is one operation: one intended action of one account, identified by (account, idempotency key). Inserting it is the
-- claim; it commits together with what it claims.
CREATE TABLE operations (
    account_id          text NOT NULL,
    idempotency_key     text NOT NULL,
    id                  text NOT NULL,
    type                text NOT NULL,
    state               text NOT NULL CHECK (state IN ('awaiting_approval', 'queued', 'running', 'succeeded', 'failed', 'canceled', 'unknown')),
    fingerprint         text NOT NULL,
    route               text NOT NULL,
    principal           text NOT NULL,
    agent_run           text NOT NULL,
    request_id          text NOT NULL,
    resource_type       text NOT NULL,
    resource_id         text NOT NULL,
    resource_href       text NOT NULL,
    response_status     integer NOT NULL, -- 0: no final answer yet
    response_location   text NOT NULL,
    response_body       blob,          -- the bytes as first sent; null before the final answer and after its retention
    created_at          datetime NOT NULL,
    updated_at          datetime NOT NULL,
    completed_at        datetime,         -- when the final answer was stored
    response_expired_at datetime,         -- when its body was dropped: what is left is a tombstone
    PRIMARY KEY (account_id, idempotency_key),
    CONSTRAINT operations_final CHECK ((state IN ('succeeded', 'failed', 'canceled')) = (completed_at IS NOT NULL AND response_status <> 0))
);

-- Ids are UUIDv7 made from the database's clock: this index also serves lists, newest first.
CREATE UNIQUE INDEX operations_id ON operations (account_id, id);

-- +goose Down
DROP TABLE operations;
