-- +goose Up

-- What callers have caused: one row is one real effect, and none is ever changed or removed. Two rows of one effect key and
-- kind are what the services must prevent; nothing here prevents it.
CREATE TABLE ledger (
    target     text NOT NULL,
    id         text NOT NULL, -- a UUIDv7: the order in which effects were made
    kind       text NOT NULL,
    effect_key text NOT NULL,
    reference  text NOT NULL, -- the target's own name of what it made
    account    text NOT NULL, -- on whose behalf; empty: not said
    at         datetime NOT NULL,
    PRIMARY KEY (target, id)
);

CREATE INDEX ledger_effect_key ON ledger (target, effect_key);

-- Every request that reached a target, whatever became of it.
CREATE TABLE calls (
    target     text NOT NULL,
    id         text NOT NULL, -- a UUIDv7: the order in which they arrived
    kind       text NOT NULL,
    effect_key text NOT NULL, -- empty: not said, or malformed
    at         datetime NOT NULL,
    faulted    boolean NOT NULL,
    PRIMARY KEY (target, id)
);

-- What a target knows of an effect key. Sends and closes of one key are put in order by its row, which each takes first.
CREATE TABLE effect_keys (
    target      text NOT NULL,
    effect_key  text NOT NULL,
    fingerprint text NOT NULL,    -- of the body that was answered
    status      integer NOT NULL, -- 0: no answer is remembered
    body        blob,
    answered_at datetime,
    floor       integer NOT NULL,  -- no send with a lower fence has an effect from when it was raised
    closed_at   datetime,         -- no send at all has an effect from then on
    PRIMARY KEY (target, effect_key)
);

-- Misfortunes that are armed, or were. Each strikes fired of times times.
CREATE TABLE faults (
    id        text NOT NULL, -- a UUIDv7: the first that fits strikes
    target    text NOT NULL,
    operation text NOT NULL, -- empty: any
    moment    text NOT NULL CHECK (moment IN ('before', 'after')),
    action    text NOT NULL, -- each target has its own
    status    integer NOT NULL,
    delay_ms  integer NOT NULL,
    times     integer NOT NULL,
    fired     integer NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT faults_fired CHECK (fired BETWEEN 0 AND times)
);

-- What a target can do, where that was changed. Without a row it can do everything.
CREATE TABLE abilities (
    target        text NOT NULL,
    keys          text NOT NULL CHECK (keys IN ('honour', 'ignore')),
    key_window_ms integer NOT NULL,
    lookup        boolean NOT NULL,
    lag_ms        integer NOT NULL,
    close         boolean NOT NULL,
    PRIMARY KEY (target)
);

-- +goose Down
DROP TABLE abilities;
DROP TABLE faults;
DROP TABLE effect_keys;
DROP TABLE calls;
DROP TABLE ledger;
