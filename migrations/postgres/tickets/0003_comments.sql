-- +goose Up

-- What people and programs say about a ticket. The ticket counts them, in the transaction that writes them.
CREATE TABLE comments (
    account_id   text COLLATE "C" NOT NULL,
    ticket_id    text COLLATE "C" NOT NULL,
    id           text COLLATE "C" NOT NULL,
    author       text COLLATE "C" NOT NULL,
    body         text COLLATE "C" NOT NULL,
    operation_id text COLLATE "C" NOT NULL, -- the operation that made it
    created_at   timestamptz NOT NULL,
    PRIMARY KEY (account_id, ticket_id, id) -- the order in which they are listed
);

-- +goose Down
DROP TABLE comments;
