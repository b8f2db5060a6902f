-- +goose Up

-- Whether a deployment that finds its environment locked when it is approved waits for its turn. Those from before were never asked about.
ALTER TABLE deployments ADD COLUMN queues boolean NOT NULL DEFAULT false;

-- +goose Down
ALTER TABLE deployments DROP COLUMN queues;
