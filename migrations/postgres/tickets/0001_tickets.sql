-- +goose Up
CREATE TABLE tickets (
    account_id      text COLLATE "C" NOT NULL,
    id              text COLLATE "C" NOT NULL,
    project         text COLLATE "C" NOT NULL,
    title           text COLLATE "C" NOT NULL,
    description     text COLLATE "C" NOT NULL,
    priority        text COLLATE "C" NOT NULL CHECK (priority IN ('low', 'normal', 'high', 'urgent')),
    labels          text COLLATE "C" NOT NULL, -- a JSON object of texts
    source_event_id text COLLATE "C",          -- null: the ticket has no identity but its id
    status          text COLLATE "C" NOT NULL CHECK (status IN ('open', 'in_progress', 'resolved', 'closed')),
    version         bigint NOT NULL,
    comment_count   bigint NOT NULL,
    operation_id    text COLLATE "C" NOT NULL, -- the operation that created it
    created_at      timestamptz NOT NULL,
    updated_at      timestamptz NOT NULL,
    closed_at       timestamptz,
    PRIMARY KEY (account_id, id)
);

-- One ticket per event and project, for ever: the rule outlives the ticket's status, the key's retention and any purge.
CREATE UNIQUE INDEX tickets_source_event ON tickets (account_id, project, source_event_id) WHERE source_event_id IS NOT NULL;

-- +goose Down
DROP TABLE tickets;
