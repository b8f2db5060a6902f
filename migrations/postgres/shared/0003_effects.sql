-- +goose Up

-- One row is one effect: one change of a system outside, for one operation. It is written in the transaction that accepts the
-- operation; while that is open, its state is here. docs/protocol.md says what each column is for and what may change it.
CREATE TABLE effects (
    account_id      text COLLATE "C" NOT NULL,
    id              text COLLATE "C" NOT NULL,
    operation_id    text COLLATE "C" NOT NULL,
    idempotency_key text COLLATE "C" NOT NULL,
    type            text COLLATE "C" NOT NULL,
    target          text COLLATE "C" NOT NULL,
    effect_key      text COLLATE "C" NOT NULL,
    command         bytea NOT NULL,
    state           text COLLATE "C" NOT NULL CHECK (state IN ('awaiting_approval', 'queued', 'running', 'succeeded', 'failed', 'canceled', 'unknown')),
    fence           bigint NOT NULL,
    doubt           bigint,
    first_sent_at   timestamptz,
    accepted_at     timestamptz,
    cancel_asked_at timestamptz,
    leased_by       text COLLATE "C" NOT NULL,
    lease_until     timestamptz,
    send_by         timestamptz,
    next_at         timestamptz,
    attempts        integer NOT NULL,
    asks            integer NOT NULL,
    priority        boolean NOT NULL,
    reference       text COLLATE "C" NOT NULL,
    review_id       text COLLATE "C" NOT NULL,
    created_at      timestamptz NOT NULL,
    updated_at      timestamptz NOT NULL,
    PRIMARY KEY (account_id, id)
);

-- An operation has at most one effect.
CREATE UNIQUE INDEX effects_operation ON effects (account_id, operation_id);

-- What is due, the oldest first, without an account: it is listed across accounts, and each is then taken by compare-and-set.
-- The account comes last, so that a listing passes over those that it leaves out without reading their rows.
CREATE INDEX effects_to_send ON effects (target, next_at, account_id) WHERE state = 'queued' AND NOT priority;
CREATE INDEX effects_to_send_first ON effects (target, next_at, account_id) WHERE state = 'queued' AND priority;
CREATE INDEX effects_to_ask ON effects (target, next_at, account_id) WHERE state IN ('running', 'unknown');

-- Calls to targets: sends, look-ups, closings.
CREATE TABLE attempts (
    account_id   text COLLATE "C" NOT NULL,
    id           text COLLATE "C" NOT NULL,
    operation_id text COLLATE "C" NOT NULL,
    effect_id    text COLLATE "C" NOT NULL,
    kind         text COLLATE "C" NOT NULL CHECK (kind IN ('send', 'lookup', 'close')),
    fence        bigint NOT NULL,
    started_at   timestamptz NOT NULL,
    ended_at     timestamptz,
    outcome      text COLLATE "C" NOT NULL,
    error        text COLLATE "C" NOT NULL,
    reference    text COLLATE "C" NOT NULL,
    PRIMARY KEY (account_id, id)
);

CREATE INDEX attempts_operation ON attempts (account_id, operation_id, id);

-- +goose Down
DROP TABLE attempts;
DROP TABLE effects;
