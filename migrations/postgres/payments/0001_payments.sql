-- +goose Up

-- What is to be paid, as the caller names it. Amounts are whole minor units of the currency.
CREATE TABLE orders (
    account_id        text COLLATE "C" NOT NULL,
    id                text COLLATE "C" NOT NULL, -- the caller's
    position          text COLLATE "C" NOT NULL, -- a UUIDv7: the order in which lists show it
    amount_minor      bigint NOT NULL,
    currency          text COLLATE "C" NOT NULL,
    payee             text COLLATE "C" NOT NULL,
    invoice_reference text COLLATE "C",
    version           bigint NOT NULL,
    frozen            boolean NOT NULL, -- a payment refers to it
    created_at        timestamptz NOT NULL,
    updated_at        timestamptz NOT NULL,
    PRIMARY KEY (account_id, id),
    CONSTRAINT orders_amount CHECK (amount_minor > 0)
);

CREATE UNIQUE INDEX orders_position ON orders (account_id, position);

-- An authorisation and what became of it. While its authorising is open the state is pending; whether that is unknown stands with
-- its effect. What may be captured, canceled or refunded is decided by compare-and-set on this row.
CREATE TABLE payments (
    account_id            text COLLATE "C" NOT NULL,
    id                    text COLLATE "C" NOT NULL,
    order_id              text COLLATE "C" NOT NULL,
    amount_minor          bigint NOT NULL,
    currency              text COLLATE "C" NOT NULL,
    state                 text COLLATE "C" NOT NULL CHECK (state IN ('pending', 'authorized', 'captured', 'canceled', 'failed')),
    captured_minor        bigint NOT NULL,
    refund_reserved_minor bigint NOT NULL, -- of refunds whose end is not known
    refunded_minor        bigint NOT NULL, -- of those that are done
    refunds               bigint NOT NULL, -- the number of the last refund
    reference             text COLLATE "C" NOT NULL, -- the provider's name for it
    operation_id          text COLLATE "C" NOT NULL, -- the operation that authorises it
    open_operation_id     text COLLATE "C" NOT NULL, -- the capture or cancel that is under way; empty: none
    created_at            timestamptz NOT NULL,
    updated_at            timestamptz NOT NULL,
    PRIMARY KEY (account_id, id),
    CONSTRAINT payments_amount CHECK (amount_minor > 0),
    CONSTRAINT payments_captured CHECK (captured_minor >= 0 AND captured_minor <= amount_minor),
    CONSTRAINT payments_refunded CHECK (refund_reserved_minor >= 0 AND refunded_minor >= 0 AND refund_reserved_minor + refunded_minor <= captured_minor)
);

-- An order has one payment at most that is not known to have come to nothing: unknown is live.
CREATE UNIQUE INDEX payments_live ON payments (account_id, order_id) WHERE state NOT IN ('failed', 'canceled');

CREATE INDEX payments_order ON payments (account_id, order_id, id);

CREATE TABLE refunds (
    account_id   text COLLATE "C" NOT NULL,
    id           text COLLATE "C" NOT NULL,
    payment_id   text COLLATE "C" NOT NULL,
    number       bigint NOT NULL, -- of the payment's refunds, from 1
    amount_minor bigint NOT NULL,
    currency     text COLLATE "C" NOT NULL,
    reason       text COLLATE "C" NOT NULL,
    reference    text COLLATE "C" NOT NULL,
    operation_id text COLLATE "C" NOT NULL,
    created_at   timestamptz NOT NULL,
    PRIMARY KEY (account_id, id),
    CONSTRAINT refunds_amount CHECK (amount_minor > 0)
);

CREATE UNIQUE INDEX refunds_number ON refunds (account_id, payment_id, number);

-- What the provider has told of objects that no operation of ours has made.
CREATE TABLE unmatched (
    account_id  text COLLATE "C" NOT NULL, -- whose operators are asked
    reference   text COLLATE "C" NOT NULL, -- the provider's name of the object
    event_id    text COLLATE "C" NOT NULL, -- the first event about it
    event_type  text COLLATE "C" NOT NULL,
    claims      text COLLATE "C" NOT NULL, -- JSON: which account and row of ours the object says it belongs to
    received_at timestamptz NOT NULL,
    review_id   text COLLATE "C" NOT NULL, -- empty: nobody has been asked yet
    PRIMARY KEY (account_id, reference)
);

-- What is to be asked about, the oldest first, across accounts.
CREATE INDEX unmatched_open ON unmatched (received_at, account_id) WHERE review_id = '';

-- +goose Down
DROP TABLE unmatched;
DROP TABLE refunds;
DROP TABLE payments;
DROP TABLE orders;
