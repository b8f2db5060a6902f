-- +goose Up

-- What the ledger tells of rollouts and stops. ended_at alone is changed afterwards: by a stop, which comes before the end that was planned.
ALTER TABLE ledger ADD COLUMN environment text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE ledger ADD COLUMN digest text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE ledger ADD COLUMN token bigint NOT NULL DEFAULT 0;
ALTER TABLE ledger ADD COLUMN started_at timestamptz;
ALTER TABLE ledger ADD COLUMN ended_at timestamptz;

-- Rollouts at the cluster. How one ends is known when it begins; until ends_at it runs.
CREATE TABLE rollouts (
    id          text COLLATE "C" NOT NULL, -- a UUIDv7: the order in which they began
    account     text COLLATE "C" NOT NULL,
    environment text COLLATE "C" NOT NULL,
    service     text COLLATE "C" NOT NULL,
    artifact    text COLLATE "C" NOT NULL, -- that was asked for
    runs        text COLLATE "C" NOT NULL, -- that runs once it has ended; empty: the one before it
    effect_key  text COLLATE "C" NOT NULL,
    token       bigint NOT NULL,
    ending      text COLLATE "C" NOT NULL CHECK (ending IN ('succeeded', 'failed', 'partial', 'stopped')),
    started_at  timestamptz NOT NULL,
    ends_at     timestamptz NOT NULL,
    PRIMARY KEY (id)
);

CREATE INDEX rollouts_effect_key ON rollouts (effect_key);
CREATE INDEX rollouts_environment ON rollouts (account, environment, id);

-- What tokens an environment at the cluster still takes: those from floor on. Everything that happens in an environment is put in order by
-- its row, which each takes first.
CREATE TABLE cluster_environments (
    account     text COLLATE "C" NOT NULL,
    environment text COLLATE "C" NOT NULL,
    floor       bigint NOT NULL,
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
