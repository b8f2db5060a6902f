-- +goose Up

-- An environment and its lock. Whatever happens in one is put in order by its row, which each changes first.
CREATE TABLE environments (
    account_id        text NOT NULL,
    name              text NOT NULL,
    position          text NOT NULL, -- in lists: when it was declared
    approval_required boolean NOT NULL,
    version           integer NOT NULL,           -- rises when a holder that has sent anything leaves the lock
    arrivals          integer NOT NULL,           -- of deployments: the order of the queue
    holder            text NOT NULL, -- of the lock, a deployment; empty: it is free, and nobody waits
    held_since        datetime,
    token             integer NOT NULL,           -- the last that was drawn, or learned: no lower one is ever drawn
    floor             integer NOT NULL,           -- that the cluster has confirmed: it takes no lower token any more
    created_at        datetime NOT NULL,
    updated_at        datetime NOT NULL,
    PRIMARY KEY (account_id, name)
);

CREATE UNIQUE INDEX environments_position ON environments (account_id, position);

-- The state of a deployment is that of its effect.
CREATE TABLE deployments (
    account_id        text NOT NULL,
    id                text NOT NULL,
    operation_id      text NOT NULL,
    kind              text NOT NULL CHECK (kind IN ('deploy', 'rollback')),
    rollback_of       text NOT NULL, -- a deployment; empty: it is no rollback
    service           text NOT NULL,
    environment       text NOT NULL,
    artifact          text NOT NULL,
    expected_version  integer,
    arrival           integer NOT NULL,
    waiting           boolean NOT NULL,          -- in the queue
    fencing_token     integer NOT NULL,           -- the highest that was drawn for it; 0: it was never sent
    stop_operation_id text NOT NULL, -- that breaks it off; empty: none
    reported_artifact text NOT NULL, -- what the cluster says runs since
    reason            text NOT NULL, -- why it has not succeeded
    replaced          text NOT NULL, -- the deployment that was live before it
    created_at        datetime NOT NULL,
    started_at        datetime,
    finished_at       datetime,
    PRIMARY KEY (account_id, id)
);

CREATE UNIQUE INDEX deployments_operation ON deployments (account_id, operation_id);
CREATE UNIQUE INDEX deployments_arrival ON deployments (account_id, environment, arrival);
CREATE UNIQUE INDEX deployments_stop ON deployments (account_id, stop_operation_id) WHERE stop_operation_id <> '';

-- What is live: the last deployment of each service that succeeded.
CREATE TABLE releases (
    account_id    text NOT NULL,
    environment   text NOT NULL,
    service       text NOT NULL,
    deployment_id text NOT NULL,
    artifact      text NOT NULL,
    since         datetime NOT NULL,
    PRIMARY KEY (account_id, environment, service)
);

-- +goose Down
DROP TABLE releases;
DROP TABLE deployments;
DROP TABLE environments;
