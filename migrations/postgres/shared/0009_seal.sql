-- +goose Up

-- Events that are in no leaf yet. A marker is written in the transaction of its event and removed by the one that seals it: a transaction that
-- commits late is found by its marker, whatever its events are called.
CREATE TABLE unsealed (
    account_id text COLLATE "C" NOT NULL,
    event_id   text COLLATE "C" NOT NULL,
    PRIMARY KEY (account_id, event_id)
);

INSERT INTO unsealed (account_id, event_id) SELECT account_id, id FROM events;

-- The leaves of the Merkle tree: which event is which, and the hashes that the leaf completes, its own first, 32 bytes each. Indexes are given by
-- whoever has moved audit_tree.size, so each is given once.
CREATE TABLE leaves (
    account_id text COLLATE "C" NOT NULL,
    event_id   text COLLATE "C" NOT NULL,
    leaf_index bigint NOT NULL,
    hashes     bytea NOT NULL,
    PRIMARY KEY (account_id, event_id)
);

CREATE INDEX leaves_index ON leaves (leaf_index);

-- One row: how many leaves and checkpoints there are.
CREATE TABLE audit_tree (
    id          integer PRIMARY KEY CHECK (id = 1),
    size        bigint NOT NULL,
    checkpoints bigint NOT NULL
);

INSERT INTO audit_tree (id, size, checkpoints) VALUES (1, 0, 0);

-- Signed checkpoints, one for each batch that was sealed.
CREATE TABLE audit_checkpoints (
    number bigint PRIMARY KEY,
    note   text COLLATE "C" NOT NULL
);

-- +goose Down
DROP TABLE audit_checkpoints;
DROP TABLE audit_tree;
DROP TABLE leaves;
DROP TABLE unsealed;
