-- +goose Up

-- What only a person can decide.
CREATE TABLE reviews (
    account_id   text NOT NULL,
    id           text NOT NULL,
    kind         text NOT NULL CHECK (kind IN ('unknown', 'deadline', 'contradiction', 'unmatched')),
    operation_id text NOT NULL, -- empty: about no operation of ours
    owner        text NOT NULL,
    evidence     text NOT NULL, -- a JSON array of what is known
    state        text NOT NULL CHECK (state IN ('open', 'resolved')),
    opened_at    datetime NOT NULL,
    due_at       datetime NOT NULL,
    resolved_by  text NOT NULL,
    resolved_at  datetime,
    PRIMARY KEY (account_id, id)
);

CREATE INDEX reviews_operation ON reviews (account_id, operation_id);

-- One question is asked once.
CREATE UNIQUE INDEX reviews_open ON reviews (account_id, operation_id, kind) WHERE state = 'open' AND operation_id <> '';

-- +goose Down
DROP TABLE reviews;
