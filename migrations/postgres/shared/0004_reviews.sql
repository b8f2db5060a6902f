-- +goose Up

-- What only a person can decide.
CREATE TABLE reviews (
    account_id   text COLLATE "C" NOT NULL,
    id           text COLLATE "C" NOT NULL,
    kind         text COLLATE "C" NOT NULL CHECK (kind IN ('unknown', 'deadline', 'contradiction', 'unmatched')),
    operation_id text COLLATE "C" NOT NULL, -- empty: about no operation of ours
    owner        text COLLATE "C" NOT NULL,
    evidence     text COLLATE "C" NOT NULL, -- a JSON array of what is known
    state        text COLLATE "C" NOT NULL CHECK (state IN ('open', 'resolved')),
    opened_at    timestamptz NOT NULL,
    due_at       timestamptz NOT NULL,
    resolved_by  text COLLATE "C" NOT NULL,
    resolved_at  timestamptz,
    PRIMARY KEY (account_id, id)
);

CREATE INDEX reviews_operation ON reviews (account_id, operation_id);

-- One question is asked once.
CREATE UNIQUE INDEX reviews_open ON reviews (account_id, operation_id, kind) WHERE state = 'open' AND operation_id <> '';

-- +goose Down
DROP TABLE reviews;
