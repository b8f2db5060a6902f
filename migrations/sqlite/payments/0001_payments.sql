-- +goose Up

-- What is to be paid, as the caller names it. Amounts are whole minor units of the currency.
CREATE TABLE orders (
    account_id        text NOT NULL,
    id                text NOT NULL, -- the caller's
    position          text NOT NULL, -- a UUIDv7: the order in which lists show it
    amount_minor      integer NOT NULL,
    currency          text NOT NULL,
    payee             text NOT NULL,
    invoice_reference text,
    version           integer NOT NULL,
    frozen            boolean NOT NULL, -- a payment refers to it
    created_at        datetime NOT NULL,
    updated_at        datetime NOT NULL,
    PRIMARY KEY (account_id, id),
    CONSTRAINT orders_amount CHECK (amount_minor > 0)
);

CREATE UNIQUE INDEX orders_position ON orders (account_id, position);

-- An authorisation and what became of it. While its authorising is open the state is pending; whether that is unknown stands with
-- its effect. What may be captured, canceled or refunded is decided by compare-and-set on this row.
CREATE TABLE payments (
    account_id            text NOT NULL,
    id                    text NOT NULL,
    order_id              text NOT NULL,
    amount_minor          integer NOT NULL,
    currency              text NOT NULL,
    state                 text NOT NULL CHECK (state IN ('pending', 'authorized', 'captured', 'canceled', 'failed')),
    captured_minor        integer NOT NULL,
    refund_reserved_minor integer NOT NULL, -- of refunds whose end is not known
    refunded_minor        integer NOT NULL, -- of those that are done
    refunds               integer NOT NULL, -- the number of the last refund
    reference             text NOT NULL, -- the provider's name for it
    operation_id          text NOT NULL, -- the operation that authorises it
    open_operation_id     text NOT NULL, -- the capture or cancel that is under way; empty: none
    created_at            datetime NOT NULL,
    updated_at            datetime NOT NULL,
    PRIMARY KEY (account_id, id),
    CONSTRAINT payments_amount CHECK (amount_minor > 0),
    CONSTRAINT payments_captured CHECK (captured_minor >= 0 AND captured_minor <= amount_minor),
    CONSTRAINT payments_refunded CHECK (refund_reserved_minor >= 0 AND refunded_minor >= 0 AND refund_reserved_minor + refunded_minor <= captured_minor)
);

-- An order has one payment at most that is not known to have come to nothing: unknown is live.
CREATE UNIQUE INDEX payments_live ON payments (account_id, order_id) WHERE state NOT IN ('failed', 'canceled');

CREATE INDEX payments_order ON payments (account_id, order_id, id);

CREATE TABLE refunds (
    account_id   text NOT NULL,
    id           text NOT NULL,
    payment_id   text NOT NULL,
    number       integer NOT NULL, -- of the payment's refunds, from 1
    amount_minor integer NOT NULL,
    currency     text NOT NULL,
    reason       text NOT NULL,
    reference    text NOT NULL,
    operation_id text NOT NULL,
    created_at   datetime NOT NULL,
    PRIMARY KEY (account_id, id),
    CONSTRAINT refunds_amount CHECK (amount_minor > 0)
);

CREATE UNIQUE INDEX refunds_number ON refunds (account_id, payment_id, number);

-- What the provider has told of objects that no operation of ours has made.
CREATE TABLE unmatched (
    account_id  text NOT NULL, -- whose operators are asked
    reference   text NOT NULL, -- the provider's name of the object
    event_id    text NOT NULL, -- the first event about it
    event_type  text NOT NULL,
    claims      text NOT NULL, -- JSON: which account and row of ours the object says it belongs to
    received_at datetime NOT NULL,
    review_id   text NOT NULL, -- empty: nobody has been asked yet
    PRIMARY KEY (account_id, reference)
);

-- What is to be asked about, the oldest first, across accounts.
CREATE INDEX unmatched_open ON unmatched (received_at, account_id) WHERE review_id = '';

-- +goose Down
DROP TABLE unmatched;
DROP TABLE refunds;
DROP TABLE payments;
DROP TABLE orders;
