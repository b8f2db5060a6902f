-- +goose Up

-- What happened to operations, appended in the transaction of what it tells. No bodies, no secrets; keys are hashed.
CREATE TABLE events (
    account_id   text COLLATE "C" NOT NULL,
    id           text COLLATE "C" NOT NULL,
    type         text COLLATE "C" NOT NULL,
    at           timestamptz NOT NULL,
    principal    text COLLATE "C" NOT NULL,
    agent_run    text COLLATE "C" NOT NULL,
    request_id   text COLLATE "C" NOT NULL,
    operation_id text COLLATE "C" NOT NULL, -- empty: the attempt belongs to no operation
    attempt_id   text COLLATE "C" NOT NULL,
    key_hash     text COLLATE "C" NOT NULL,
    fingerprint  text COLLATE "C" NOT NULL,
    route        text COLLATE "C" NOT NULL,
    effect_key   text COLLATE "C" NOT NULL,
    reference    text COLLATE "C" NOT NULL,
    from_state   text COLLATE "C" NOT NULL,
    to_state     text COLLATE "C" NOT NULL,
    PRIMARY KEY (account_id, id)
);

CREATE INDEX events_operation ON events (account_id, operation_id, id);

-- +goose Down
DROP TABLE events;
