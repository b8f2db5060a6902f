-- +goose Up

-- One row is one effect: one change of a system outside, for one operation. It is written in the transaction that accepts the
-- operation; while that is open, its state is here. docs/protocol.md says what each column is for and what may change it.
CREATE TABLE effects (
    account_id      text NOT NULL,
    id              text NOT NULL,
    operation_id    text NOT NULL,
    idempotency_key text NOT NULL,
    type            text NOT NULL,
    target          text NOT NULL,
    effect_key      text NOT NULL,
    command         blob NOT NULL,
    state           text NOT NULL CHECK (state IN ('awaiting_approval', 'queued', 'running', 'succeeded', 'failed', 'canceled', 'unknown')),
    fence           integer NOT NULL,
    doubt           integer,
    first_sent_at   datetime,
    accepted_at     datetime,
    cancel_asked_at datetime,
    leased_by       text NOT NULL,
    lease_until     datetime,
    send_by         datetime,
    next_at         datetime,
    attempts        integer NOT NULL,
    asks            integer NOT NULL,
    priority        boolean NOT NULL,
    reference       text NOT NULL,
    review_id       text NOT NULL,
    created_at      datetime NOT NULL,
    updated_at      datetime NOT NULL,
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
    account_id   text NOT NULL,
    id           text NOT NULL,
    operation_id text NOT NULL,
    effect_id    text NOT NULL,
    kind         text NOT NULL CHECK (kind IN ('send', 'lookup', 'close')),
    fence        integer NOT NULL,
    started_at   datetime NOT NULL,
    ended_at     datetime,
    outcome      text NOT NULL,
    error        text NOT NULL,
    reference    text NOT NULL,
    PRIMARY KEY (account_id, id)
);

CREATE INDEX attempts_operation ON attempts (account_id, operation_id, id);

-- +goose Down
DROP TABLE attempts;
DROP TABLE effects;
