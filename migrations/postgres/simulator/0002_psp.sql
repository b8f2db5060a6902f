-- +goose Up

-- What an effect that moves money says of it. Empty and 0: not said.
ALTER TABLE ledger ADD COLUMN amount_minor bigint NOT NULL DEFAULT 0;
ALTER TABLE ledger ADD COLUMN currency text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE ledger ADD COLUMN order_id text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE ledger ADD COLUMN parent text COLLATE "C" NOT NULL DEFAULT ''; -- the reference of what it was done to

-- Payment intents of the payment provider.
CREATE TABLE psp_intents (
    id                  text COLLATE "C" NOT NULL, -- pi_ and a UUIDv7: the order in which they were created
    amount              bigint NOT NULL, -- minor units, like all amounts
    amount_received     bigint NOT NULL,
    amount_refunded     bigint NOT NULL,
    currency            text COLLATE "C" NOT NULL, -- lower-case, as the provider writes it
    capture_method      text COLLATE "C" NOT NULL,
    status              text COLLATE "C" NOT NULL,
    payment_method      text COLLATE "C" NOT NULL, -- empty: none yet
    charge              text COLLATE "C" NOT NULL, -- empty: not confirmed
    declined            text COLLATE "C" NOT NULL, -- why the last confirmation failed; empty: it did not
    cancellation_reason text COLLATE "C" NOT NULL,
    description         text COLLATE "C" NOT NULL,
    created_at          timestamptz NOT NULL,
    canceled_at         timestamptz,
    PRIMARY KEY (id)
);

-- What callers have written on intents and refunds, one row a name: search looks here.
CREATE TABLE psp_metadata (
    object text COLLATE "C" NOT NULL, -- the id of an intent or a refund
    name   text COLLATE "C" NOT NULL,
    value  text COLLATE "C" NOT NULL,
    PRIMARY KEY (object, name)
);

CREATE INDEX psp_metadata_value ON psp_metadata (name, value);

CREATE TABLE psp_refunds (
    id         text COLLATE "C" NOT NULL, -- re_ and a UUIDv7
    intent     text COLLATE "C" NOT NULL,
    charge     text COLLATE "C" NOT NULL,
    amount     bigint NOT NULL,
    currency   text COLLATE "C" NOT NULL,
    status     text COLLATE "C" NOT NULL,
    reason     text COLLATE "C" NOT NULL,
    failure    text COLLATE "C" NOT NULL, -- why it failed; empty: it did not
    created_at timestamptz NOT NULL,
    PRIMARY KEY (id)
);

CREATE INDEX psp_refunds_intent ON psp_refunds (intent);

-- Where a target sends its events.
CREATE TABLE webhook_endpoints (
    target text COLLATE "C" NOT NULL,
    url    text COLLATE "C" NOT NULL,
    secret text COLLATE "C" NOT NULL,
    PRIMARY KEY (target)
);

-- Events of a target, and how far their delivery is.
CREATE TABLE webhook_events (
    target       text COLLATE "C" NOT NULL,
    id           text COLLATE "C" NOT NULL, -- evt_ and a UUIDv7: the order in which they happened
    type         text COLLATE "C" NOT NULL,
    reference    text COLLATE "C" NOT NULL, -- what it is about
    body         bytea NOT NULL,
    at           timestamptz NOT NULL,
    due_at       timestamptz NOT NULL, -- of the next attempt
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
