-- +goose Up

-- What is marked to be sealed and the leaves take a row each for many events, in place of one for each event. The views below tell them one by one. Nothing
-- that there is gets lost: an old marker becomes one of one event, an old leaf a segment of one leaf.
--
-- A marker is written in the transaction of its events, which write it together, and removed by the one that seals them: a transaction that commits late is
-- found by its marker, whatever its events are called. It says [account, id, hash] of each; those that were there before have no hash.
CREATE TABLE markers (
    id     integer PRIMARY KEY,
    events text NOT NULL
);

INSERT INTO markers (events) SELECT json_array(json_array(account_id, event_id)) FROM unsealed ORDER BY event_id;

-- A segment has leaves that follow each other and were sealed together, and whose events' ids begin alike: [account, id] of each, in the order of ids, and the
-- hashes of the tree that they complete, 32 bytes each, a leaf's own first. Indexes are given by whoever has moved audit_tree, so each is given once.
CREATE TABLE segments (
    first_index integer PRIMARY KEY,
    first_hash  integer NOT NULL, -- how many hashes the leaves before these complete
    events      text NOT NULL,
    hashes      blob NOT NULL,
    first_event text GENERATED ALWAYS AS (events ->> '$[0][1]') STORED,
    last_event  text GENERATED ALWAYS AS (events ->> '$[#-1][1]') STORED
);

CREATE UNIQUE INDEX segments_hashes ON segments (first_hash);
CREATE INDEX segments_events ON segments (first_event, last_event);

-- Of n leaves, n hashes are their own, one more is above every two of them, above every four …
INSERT INTO segments (first_index, first_hash, events, hashes)
WITH RECURSIVE level (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM level WHERE n < 62)
SELECT leaf_index, (SELECT sum(leaf_index >> n) FROM level), json_array(json_array(account_id, event_id)), hashes FROM leaves ORDER BY leaf_index;

DROP TABLE unsealed;
DROP TABLE leaves;

-- What is no list of events, as nobody writes it, is one event without a name: it is to be found, and not to fail who looks for it.
CREATE VIEW unsealed AS
SELECT m.id AS marker, CAST(CASE e.type WHEN 'array' THEN e.value ->> 0 END AS text) AS account_id, CAST(CASE e.type WHEN 'array' THEN e.value ->> 1 END AS text) AS event_id,
    CAST(CASE e.type WHEN 'array' THEN e.value ->> 2 END AS text) AS hash
FROM markers m LEFT JOIN json_each(CASE WHEN json_valid(m.events) THEN m.events END) e;

CREATE VIEW leaves AS
SELECT s.first_index + coalesce(e.key, 0) AS leaf_index, CAST(CASE e.type WHEN 'array' THEN e.value ->> 0 END AS text) AS account_id,
    CAST(CASE e.type WHEN 'array' THEN e.value ->> 1 END AS text) AS event_id, s.first_index, s.first_event, s.last_event
FROM segments s LEFT JOIN json_each(CASE WHEN json_valid(s.events) THEN s.events END) e;

-- +goose StatementBegin
CREATE TRIGGER segments_no_update BEFORE UPDATE ON segments
BEGIN
    SELECT RAISE(ABORT, 'segments are only ever added');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER segments_no_delete BEFORE DELETE ON segments
BEGIN
    SELECT RAISE(ABORT, 'segments are only ever added');
END;
-- +goose StatementEnd

-- +goose Down
CREATE TABLE old_unsealed (
    account_id text NOT NULL,
    event_id   text NOT NULL,
    PRIMARY KEY (account_id, event_id)
);

INSERT INTO old_unsealed (account_id, event_id) SELECT DISTINCT account_id, event_id FROM unsealed WHERE event_id IS NOT NULL;

CREATE TABLE old_leaves (
    account_id text NOT NULL,
    event_id   text NOT NULL,
    leaf_index integer NOT NULL,
    hashes     blob NOT NULL,
    PRIMARY KEY (account_id, event_id)
);

INSERT INTO old_leaves (account_id, event_id, leaf_index, hashes)
WITH RECURSIVE level (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM level WHERE n < 62),
    stored (account_id, event_id, leaf_index, first_index, before, after) AS (
        SELECT account_id, event_id, leaf_index, first_index, (SELECT sum(leaf_index >> n) FROM level), (SELECT sum((leaf_index + 1) >> n) FROM level) FROM leaves
    )
SELECT l.account_id, l.event_id, l.leaf_index, substr(s.hashes, 1 + 32 * (l.before - s.first_hash), 32 * (l.after - l.before))
FROM stored l JOIN segments s ON s.first_index = l.first_index;

DROP VIEW unsealed;
DROP VIEW leaves;
DROP TABLE markers;
DROP TABLE segments;
ALTER TABLE old_unsealed RENAME TO unsealed;
ALTER TABLE old_leaves RENAME TO leaves;
CREATE INDEX leaves_index ON leaves (leaf_index);

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
