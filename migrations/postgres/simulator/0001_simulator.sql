-- +goose Up

-- What callers have caused: one row is one real effect, and none is ever changed or removed. Two rows of one effect key and
-- kind are what the services must prevent; nothing here prevents it.
CREATE TABLE ledger (
    target     text COLLATE "C" NOT NULL,
    id         text COLLATE "C" NOT NULL, -- a UUIDv7: the order in which effects were made
    kind       text COLLATE "C" NOT NULL,
    effect_key text COLLATE "C" NOT NULL,
    reference  text COLLATE "C" NOT NULL, -- the target's own name of what it made
    account    text COLLATE "C" NOT NULL, -- on whose behalf; empty: not said
    at         timestamptz NOT NULL,
    PRIMARY KEY (target, id)
);

CREATE INDEX ledger_effect_key ON ledger (target, effect_key);

-- Every request that reached a target, whatever became of it.
CREATE TABLE calls (
    target     text COLLATE "C" NOT NULL,
    id         text COLLATE "C" NOT NULL, -- a UUIDv7: the order in which they arrived
    kind       text COLLATE "C" NOT NULL,
    effect_key text COLLATE "C" NOT NULL, -- empty: not said, or malformed
    at         timestamptz NOT NULL,
    faulted    boolean NOT NULL,
    PRIMARY KEY (target, id)
);

-- What a target knows of an effect key. Sends and closes of one key are put in order by its row, which each takes first.
CREATE TABLE effect_keys (
    target      text COLLATE "C" NOT NULL,
    effect_key  text COLLATE "C" NOT NULL,
    fingerprint text COLLATE "C" NOT NULL,    -- of the body that was answered
    status      integer NOT NULL, -- 0: no answer is remembered
    body        bytea,
    answered_at timestamptz,
    floor       bigint NOT NULL,  -- no send with a lower fence has an effect from when it was raised
    closed_at   timestamptz,        -- no send at all has an effect from then on
    PRIMARY KEY (target, effect_key)
);

-- Misfortunes that are armed, or were. Each strikes fired of times times.
CREATE TABLE faults (
    id        text COLLATE "C" NOT NULL, -- a UUIDv7: the first that fits strikes
    target    text COLLATE "C" NOT NULL,
    operation text COLLATE "C" NOT NULL, -- empty: any
    moment    text COLLATE "C" NOT NULL CHECK (moment IN ('before', 'after')),
    action    text COLLATE "C" NOT NULL, -- each target has its own
    status    integer NOT NULL,
    delay_ms  bigint NOT NULL,
    times     bigint NOT NULL,
    fired     bigint NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT faults_fired CHECK (fired BETWEEN 0 AND times)
);

-- What a target can do, where that was changed. Without a row it can do everything.
CREATE TABLE abilities (
    target        text COLLATE "C" NOT NULL,
    keys          text COLLATE "C" NOT NULL CHECK (keys IN ('honour', 'ignore')),
    key_window_ms bigint NOT NULL,
    lookup        boolean NOT NULL,
    lag_ms        bigint NOT NULL,
    close         boolean NOT NULL,
    PRIMARY KEY (target)
);

-- +goose Down
DROP TABLE abilities;
DROP TABLE faults;
DROP TABLE effect_keys;
DROP TABLE calls;
DROP TABLE ledger;
