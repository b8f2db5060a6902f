-- +goose Up

-- Events that are in no leaf yet. A marker is written in the transaction of its event and removed by the one that seals it: a transaction that
-- commits late is found by its marker, whatever its events are called.
CREATE TABLE unsealed (
    account_id text NOT NULL,
    event_id   text NOT NULL,
    PRIMARY KEY (account_id, event_id)
);

INSERT INTO unsealed (account_id, event_id) SELECT account_id, id FROM events;

-- The leaves of the Merkle tree: which event is which, and the hashes that the leaf completes, its own first, 32 bytes each. Indexes are given by
-- whoever has moved audit_tree.size, so each is given once.
CREATE TABLE leaves (
    account_id text NOT NULL,
    event_id   text NOT NULL,
    leaf_index integer NOT NULL,
    hashes     blob NOT NULL,
    PRIMARY KEY (account_id, event_id)
);

CREATE INDEX leaves_index ON leaves (leaf_index);

-- One row: how many leaves and checkpoints there are.
CREATE TABLE audit_tree (
    id          integer PRIMARY KEY CHECK (id = 1),
    size        integer NOT NULL,
    checkpoints integer NOT NULL
);

INSERT INTO audit_tree (id, size, checkpoints) VALUES (1, 0, 0);

-- Signed checkpoints, one for each batch that was sealed.
CREATE TABLE audit_checkpoints (
    number integer PRIMARY KEY,
    note   text NOT NULL
);

-- What has happened is not changed. On PostgreSQL the role that services connect as is not granted it (einmal migrate --grant); SQLite has no
-- roles, and whoever can write the file can drop these: they are a rail, the tree is the proof.

-- +goose StatementBegin
CREATE TRIGGER events_no_update BEFORE UPDATE ON events
BEGIN
    SELECT RAISE(ABORT, 'events are only ever added');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER events_no_delete BEFORE DELETE ON events
BEGIN
    SELECT RAISE(ABORT, 'events are only ever added');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER leaves_no_update BEFORE UPDATE ON leaves
BEGIN
    SELECT RAISE(ABORT, 'leaves are only ever added');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER leaves_no_delete BEFORE DELETE ON leaves
BEGIN
    SELECT RAISE(ABORT, 'leaves are only ever added');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER audit_checkpoints_no_update BEFORE UPDATE ON audit_checkpoints
BEGIN
    SELECT RAISE(ABORT, 'audit_checkpoints are only ever added');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER audit_checkpoints_no_delete BEFORE DELETE ON audit_checkpoints
BEGIN
    SELECT RAISE(ABORT, 'audit_checkpoints are only ever added');
END;
-- +goose StatementEnd

-- +goose Down
DROP TRIGGER events_no_update;
DROP TRIGGER events_no_delete;
DROP TABLE audit_checkpoints;
DROP TABLE audit_tree;
DROP TABLE leaves;
DROP TABLE unsealed;
