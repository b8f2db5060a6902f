-- +goose Up

-- What waits for a person, of an account: what they look at all day, among all that was ever decided.
CREATE INDEX reviews_listed ON reviews (account_id, id) WHERE state = 'open';
CREATE INDEX approvals_listed ON approvals (account_id, id) WHERE state = 'pending';

-- Made again to be the newest, on purpose: while a table has no statistics PostgreSQL holds two such indexes that begin alike for equally
-- good, takes the newest, and each effect that ends would read all open reviews of its account through the other.
DROP INDEX reviews_open;
CREATE UNIQUE INDEX reviews_open ON reviews (account_id, operation_id, kind) WHERE state = 'open' AND operation_id <> '';

-- +goose Down
DROP INDEX approvals_listed;
DROP INDEX reviews_listed;
