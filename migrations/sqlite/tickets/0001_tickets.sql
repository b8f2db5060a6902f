-- +goose Up
CREATE TABLE tickets (
    account_id      text NOT NULL,
    id              text NOT NULL,
    project         text NOT NULL,
    title           text NOT NULL,
    description     text NOT NULL,
    priority        text NOT NULL CHECK (priority IN ('low', 'normal', 'high', 'urgent')),
    labels          text NOT NULL, -- a JSON object of texts
    source_event_id text,          -- null: the ticket has no identity but its id
    status          text NOT NULL CHECK (status IN ('open', 'in_progress', 'resolved', 'closed')),
    version         integer NOT NULL,
    comment_count   integer NOT NULL,
    operation_id    text NOT NULL, -- the operation that created it
    created_at      datetime NOT NULL,
    updated_at      datetime NOT NULL,
    closed_at       datetime,
    PRIMARY KEY (account_id, id)
);

-- One ticket per event and project, for ever: the rule outlives the ticket's status, the key's retention and any purge.
CREATE UNIQUE INDEX tickets_source_event ON tickets (account_id, project, source_event_id) WHERE source_event_id IS NOT NULL;

-- +goose Down
DROP TABLE tickets;
