-- +goose Up

-- What an effect that moves money says of it. Empty and 0: not said.
ALTER TABLE ledger ADD COLUMN amount_minor integer NOT NULL DEFAULT 0;
ALTER TABLE ledger ADD COLUMN currency text NOT NULL DEFAULT '';
ALTER TABLE ledger ADD COLUMN order_id text NOT NULL DEFAULT '';
ALTER TABLE ledger ADD COLUMN parent text NOT NULL DEFAULT ''; -- the reference of what it was done to

-- Payment intents of the payment provider.
CREATE TABLE psp_intents (
    id                  text NOT NULL, -- pi_ and a UUIDv7: the order in which they were created
    amount              integer NOT NULL, -- minor units, like all amounts
    amount_received     integer NOT NULL,
    amount_refunded     integer NOT NULL,
    currency            text NOT NULL, -- lower-case, as the provider writes it
    capture_method      text NOT NULL,
    status              text NOT NULL,
    payment_method      text NOT NULL, -- empty: none yet
    charge              text NOT NULL, -- empty: not confirmed
    declined            text NOT NULL, -- why the last confirmation failed; empty: it did not
    cancellation_reason text NOT NULL,
    description         text NOT NULL,
    created_at          datetime NOT NULL,
    canceled_at         datetime,
    PRIMARY KEY (id)
);

-- What callers have written on intents and refunds, one row a name: search looks here.
CREATE TABLE psp_metadata (
    object text NOT NULL, -- the id of an intent or a refund
    name   text NOT NULL,
    value  text NOT NULL,
    PRIMARY KEY (object, name)
);

CREATE INDEX psp_metadata_value ON psp_metadata (name, value);

CREATE TABLE psp_refunds (
    id         text NOT NULL, -- re_ and a UUIDv7
    intent     text NOT NULL,
    charge     text NOT NULL,
    amount     integer NOT NULL,
    currency   text NOT NULL,
    status     text NOT NULL,
    reason     text NOT NULL,
    failure    text NOT NULL, -- why it failed; empty: it did not
    created_at datetime NOT NULL,
    PRIMARY KEY (id)
);

CREATE INDEX psp_refunds_intent ON psp_refunds (intent);

-- Where a target sends its events.
CREATE TABLE webhook_endpoints (
    target text NOT NULL,
    url    text NOT NULL,
    secret text NOT NULL,
    PRIMARY KEY (target)
);

-- Events of a target, and how far their delivery is.
CREATE TABLE webhook_events (
    target       text NOT NULL,
    id           text NOT NULL, -- evt_ and a UUIDv7: the order in which they happened
    type         text NOT NULL,
    reference    text NOT NULL, -- what it is about
    body         blob NOT NULL,
    at           datetime NOT NULL,
    due_at       datetime NOT NULL, -- of the next attempt
    attempts     integer NOT NULL,
    copies       integer NOT NULL, -- how many more times it is to be accepted; 0: no more
    behind       boolean NOT NULL, -- waits until a later event was accepted
    faulted      boolean NOT NULL,
    PRIMARY KEY (target, id)
);

CREATE INDEX webhook_events_due ON webhook_events (due_at) WHERE copies > 0;

-- +goose Down
DROP TABLE webhook_events;
DROP TABLE webhook_endpoints;
DROP TABLE psp_refunds;
DROP TABLE psp_metadata;
DROP TABLE psp_intents;
ALTER TABLE ledger DROP COLUMN parent;
ALTER TABLE ledger DROP COLUMN order_id;
ALTER TABLE ledger DROP COLUMN currency;
ALTER TABLE ledger DROP COLUMN amount_minor;
