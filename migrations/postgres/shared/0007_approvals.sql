-- +goose Up

-- A person's yes or no to one operation, asked for when that is accepted. It holds for this fingerprint, this state of the world and
-- until then, whoever answers and whenever.
CREATE TABLE approvals (
    account_id      text COLLATE "C" NOT NULL,
    id              text COLLATE "C" NOT NULL,
    operation_id    text COLLATE "C" NOT NULL,
    idempotency_key text COLLATE "C" NOT NULL, -- of the operation
    fingerprint     text COLLATE "C" NOT NULL, -- of the operation
    world_version   text COLLATE "C" NOT NULL, -- what was there when the question was asked
    requested_by    text COLLATE "C" NOT NULL,
    facts           text COLLATE "C" NOT NULL, -- JSON: what exactly will happen
    consequence     text COLLATE "C" NOT NULL,
    state           text COLLATE "C" NOT NULL CHECK (state IN ('pending', 'approved', 'rejected', 'expired', 'stale')),
    decided_by      text COLLATE "C" NOT NULL, -- empty: nobody has decided
    approved        boolean NOT NULL, -- a person has said yes, whatever has become of it since
    reason          text COLLATE "C" NOT NULL,
    created_at      timestamptz NOT NULL,
    expires_at      timestamptz NOT NULL, -- of the question, and of the yes
    decided_at      timestamptz,
    PRIMARY KEY (account_id, id)
);

-- An operation asks once.
CREATE UNIQUE INDEX approvals_operation ON approvals (account_id, operation_id);

-- What expires next, across accounts.
CREATE INDEX approvals_pending ON approvals (expires_at, account_id, id) WHERE state = 'pending';

-- The approval that an effect may not be sent without; empty: none is needed. From approved_until on it is not valid any more.
ALTER TABLE effects ADD COLUMN approval_id text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE effects ADD COLUMN approved_until timestamptz;

-- +goose Down
ALTER TABLE effects DROP COLUMN approved_until;
ALTER TABLE effects DROP COLUMN approval_id;
DROP TABLE approvals;
