-- +goose Up

-- Until when the target has asked to be left alone about an effect: a person who asks sooner is not served sooner.
ALTER TABLE effects ADD COLUMN quiet_until datetime;

-- +goose Down
ALTER TABLE effects DROP COLUMN quiet_until;
