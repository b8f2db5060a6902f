-- +goose Up

-- What happened to operations, appended in the transaction of what it tells. No bodies, no secrets; keys are hashed.
CREATE TABLE events (
    account_id   text NOT NULL,
    id           text NOT NULL,
    type         text NOT NULL,
    at           datetime NOT NULL,
    principal    text NOT NULL,
    agent_run    text NOT NULL,
    request_id   text NOT NULL,
    operation_id text NOT NULL, -- empty: the attempt belongs to no operation
    attempt_id   text NOT NULL,
    key_hash     text NOT NULL,
    fingerprint  text NOT NULL,
    route        text NOT NULL,
    effect_key   text NOT NULL,
    reference    text NOT NULL,
    from_state   text NOT NULL,
    to_state     text NOT NULL,
    PRIMARY KEY (account_id, id)
);

CREATE INDEX events_operation ON events (account_id, operation_id, id);

-- +goose Down
DROP TABLE events;
