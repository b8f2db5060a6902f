-- +goose Up

-- One row: the name under which this database's effects are known outside, unless EINMAL_NAMESPACE gives another. It is made once and
-- comes back with the database, so that a claim that a restore has forgotten, and that is made again, sends the same keys.
CREATE TABLE installation (
    id        integer PRIMARY KEY CHECK (id = 1),
    namespace text NOT NULL CHECK (namespace <> '')
);

-- What was sent before there was this table has gone out as "einmal".
INSERT INTO installation (id, namespace)
SELECT 1, CASE WHEN EXISTS (SELECT 1 FROM effects) THEN 'einmal' ELSE lower(hex(randomblob(16))) END;

-- +goose Down
DROP TABLE installation;
