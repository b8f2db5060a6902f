-- +goose Up

-- Which operation mirrors a ticket at the external desk, and what the desk calls it. Its state is with its effect.
ALTER TABLE tickets ADD COLUMN mirror_operation_id text NOT NULL DEFAULT '';
ALTER TABLE tickets ADD COLUMN mirror_reference text NOT NULL DEFAULT '';

CREATE UNIQUE INDEX tickets_mirror ON tickets (account_id, mirror_operation_id) WHERE mirror_operation_id <> '';

-- +goose Down
DROP INDEX tickets_mirror;
ALTER TABLE tickets DROP COLUMN mirror_reference;
ALTER TABLE tickets DROP COLUMN mirror_operation_id;
