-- +goose Up

-- Until when an effect is worth bringing out, as its operation type's policy says at the claim; null: accepted before there were deadlines.
ALTER TABLE effects ADD COLUMN deadline timestamptz;

-- When it was noticed that the effect is open past that, and a person was asked.
ALTER TABLE effects ADD COLUMN overdue_at timestamptz;

-- What the target shows in place of what was asked for, in the provider's own format; empty: nothing else was seen.
ALTER TABLE effects ADD COLUMN shown text COLLATE "C" NOT NULL DEFAULT '';

-- What is open past its deadline, and not noticed yet.
CREATE INDEX effects_overdue ON effects (target, deadline, id) WHERE state IN ('queued', 'running', 'unknown') AND overdue_at IS NULL AND deadline IS NOT NULL;

-- Who is asked once a review is overdue, when that was told, and what its operation was declared to be.
ALTER TABLE reviews ADD COLUMN escalation text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE reviews ADD COLUMN escalated_at timestamptz;
ALTER TABLE reviews ADD COLUMN resolved_as text COLLATE "C" NOT NULL DEFAULT '';

CREATE INDEX reviews_overdue ON reviews (due_at, id) WHERE state = 'open' AND escalated_at IS NULL;

-- +goose Down
DROP INDEX reviews_overdue;
ALTER TABLE reviews DROP COLUMN resolved_as;
ALTER TABLE reviews DROP COLUMN escalated_at;
ALTER TABLE reviews DROP COLUMN escalation;
DROP INDEX effects_overdue;
ALTER TABLE effects DROP COLUMN shown;
ALTER TABLE effects DROP COLUMN overdue_at;
ALTER TABLE effects DROP COLUMN deadline;
