-- +goose Up

-- What the ledger tells of rollouts and stops. ended_at alone is changed afterwards: by a stop, which comes before the end that was planned.
ALTER TABLE ledger ADD COLUMN environment text NOT NULL DEFAULT '';
ALTER TABLE ledger ADD COLUMN digest text NOT NULL DEFAULT '';
ALTER TABLE ledger ADD COLUMN token integer NOT NULL DEFAULT 0;
ALTER TABLE ledger ADD COLUMN started_at datetime;
ALTER TABLE ledger ADD COLUMN ended_at datetime;

-- Rollouts at the cluster. How one ends is known when it begins; until ends_at it runs.
CREATE TABLE rollouts (
    id          text NOT NULL, -- a UUIDv7: the order in which they began
    account     text NOT NULL,
    environment text NOT NULL,
    service     text NOT NULL,
    artifact    text NOT NULL, -- that was asked for
    runs        text NOT NULL, -- that runs once it has ended; empty: the one before it
    effect_key  text NOT NULL,
    token       integer NOT NULL,
    ending      text NOT NULL CHECK (ending IN ('succeeded', 'failed', 'partial', 'stopped')),
    started_at  datetime NOT NULL,
    ends_at     datetime NOT NULL,
    PRIMARY KEY (id)
);

CREATE INDEX rollouts_effect_key ON rollouts (effect_key);
CREATE INDEX rollouts_environment ON rollouts (account, environment, id);

-- What tokens an environment at the cluster still takes: those from floor on. Everything that happens in an environment is put in order by
-- its row, which each takes first.
CREATE TABLE cluster_environments (
    account     text NOT NULL,
    environment text NOT NULL,
    floor       integer NOT NULL,
    PRIMARY KEY (account, environment)
);

-- +goose Down
DROP TABLE cluster_environments;
DROP TABLE rollouts;
ALTER TABLE ledger DROP COLUMN ended_at;
ALTER TABLE ledger DROP COLUMN started_at;
ALTER TABLE ledger DROP COLUMN token;
ALTER TABLE ledger DROP COLUMN digest;
ALTER TABLE ledger DROP COLUMN environment;
