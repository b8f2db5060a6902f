-- +goose Up

-- One row is one operation: one intended action of one account, identified by (account, idempotency key). Inserting it is the
-- claim; it commits together with what it claims.
CREATE TABLE operations (
    account_id          text COLLATE "C" NOT NULL,
    idempotency_key     text COLLATE "C" NOT NULL,
    id                  text COLLATE "C" NOT NULL,
    type                text COLLATE "C" NOT NULL,
    state               text COLLATE "C" NOT NULL CHECK (state IN ('awaiting_approval', 'queued', 'running', 'succeeded', 'failed', 'canceled', 'unknown')),
    fingerprint         text COLLATE "C" NOT NULL,
    route               text COLLATE "C" NOT NULL,
    principal           text COLLATE "C" NOT NULL,
    agent_run           text COLLATE "C" NOT NULL,
    request_id          text COLLATE "C" NOT NULL,
    resource_type       text COLLATE "C" NOT NULL,
    resource_id         text COLLATE "C" NOT NULL,
    resource_href       text COLLATE "C" NOT NULL,
    response_status     integer NOT NULL, -- 0: no final answer yet
    response_location   text COLLATE "C" NOT NULL,
    response_body       bytea,          -- the bytes as first sent; null before the final answer and after its retention
    created_at          timestamptz NOT NULL,
    updated_at          timestamptz NOT NULL,
    completed_at        timestamptz,         -- when the final answer was stored
    response_expired_at timestamptz,         -- when its body was dropped: what is left is a tombstone
    CONSTRAINT operations_final CHECK ((state IN ('succeeded', 'failed', 'canceled')) = (completed_at IS NOT NULL AND response_status <> 0))
);

-- Ids are UUIDv7 made from the database's clock: this index also serves lists, newest first.
CREATE UNIQUE INDEX operations_id ON operations (account_id, id);

-- Last, on purpose: while a table has no statistics the planner holds two unique indexes that begin alike for equally good, takes
-- the newest for a look-up by key, and would read all operations of the account through the other.
ALTER TABLE operations ADD PRIMARY KEY (account_id, idempotency_key);

-- +goose Down
DROP TABLE operations;
