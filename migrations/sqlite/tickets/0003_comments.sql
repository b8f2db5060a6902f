-- +goose Up

-- What people and programs say about a ticket. The ticket counts them, in the transaction that writes them.
CREATE TABLE comments (
    account_id   text NOT NULL,
    ticket_id    text NOT NULL,
    id           text NOT NULL,
    author       text NOT NULL,
    body         text NOT NULL,
    operation_id text NOT NULL, -- the operation that made it
    created_at   datetime NOT NULL,
    PRIMARY KEY (account_id, ticket_id, id) -- the order in which they are listed
);

-- +goose Down
DROP TABLE comments;
